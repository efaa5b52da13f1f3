-- Mail on its way out, and afterwards the log of it: written in the transaction of what it tells, sent by the task core/send_mail.

create table core.outgoing_mail (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  recipient text
    constraint outgoing_mail_recipient_is_one_address check (recipient ~ '^[^[:space:][:cntrl:]<>()",:;]+@[^[:space:][:cntrl:]<>()",:;]+$'),
  subject text not null constraint outgoing_mail_subject_is_one_line check (subject <> '' and subject !~ '[[:cntrl:]]'),
  text text not null,
  created_at timestamptz(3) not null default now(),
  sent_at timestamptz(3),
  attempts integer not null default 0,
  error text,
  primary key (organization_id, id)
);
comment on table core.outgoing_mail is 'Mail to people of an organization, in plain text.';
comment on column core.outgoing_mail.id is 'The Message-ID follows from it, so that a mail which is sent twice can be known as one.';
comment on column core.outgoing_mail.recipient is 'Null: the organization has nobody to write to, and the mail is logged instead.';
comment on column core.outgoing_mail.sent_at is 'When the SMTP server took it. Null with an error: not sent, or not yet.';
comment on column core.outgoing_mail.attempts is 'Times that it was handed to the SMTP server, counted before each.';

-- Requests have no business here; should one ever get any, it sees its own organization alone.
call core.protect_tenant_table('core.outgoing_mail');
revoke all on core.outgoing_mail from rail_api;
