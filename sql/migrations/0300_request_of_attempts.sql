-- The delivery log shows the whole request. What is signed differs in each attempt, and an endpoint may move.
alter table webhooks.attempt
  add column url text,
  add column rail_signature text,
  add column webhook_signature text;
comment on column webhooks.attempt.url is 'Where it was sent to. Of a team chat, a hint: the address is a secret.';
comment on column webhooks.attempt.rail_signature is 'The header Rail-Signature. Null: none was sent, as to a team chat.';
comment on column webhooks.attempt.webhook_signature is 'The header webhook-signature. Null: none was sent.';
