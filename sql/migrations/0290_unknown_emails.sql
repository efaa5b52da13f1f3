-- Emails of which nobody can tell whether they left: held for a person, sent again by request, and found by the other Message-IDs that they have.

alter table recruitment.message
  add column other_message_ids text[] not null default '{}',
  add column resends integer not null default 0 constraint message_resends_not_negative check (resends >= 0);
comment on column recruitment.message.other_message_ids is 'Message-IDs that it has besides: the one that its provider wrote, and those it had before it was sent again.';
comment on column recruitment.message.resends is 'How often it was sent again by request: each time it has a new Message-ID.';
create index message_other_ids on recruitment.message using gin (other_message_ids) where other_message_ids <> '{}';
create index message_unknown on recruitment.message (organization_id, inbox_id, claimed_at) where state = 'unknown';

alter table recruitment.sequence add column is_held boolean not null default false;
comment on column recruitment.sequence.is_held is 'Whether it waits for a person because its first email may not have been sent.';
