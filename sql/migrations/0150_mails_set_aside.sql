-- Emails that reading failed at, which are read again later while the rest of the mailbox is read on; and what tells apart emails that came in
-- under one Message-ID.

create table recruitment.mail_set_aside (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  folder text not null,
  uid_validity bigint not null,
  uid bigint not null,
  message_id text collate "C",
  tries integer not null default 1 constraint mail_set_aside_tries_positive check (tries > 0),
  next_try_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, inbox_id, folder, uid_validity, uid),
  constraint mail_set_aside_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id) on delete cascade,
  constraint mail_set_aside_message foreign key (organization_id, message_id)
    references recruitment.message (organization_id, id) on delete set null (message_id)
);
comment on table recruitment.mail_set_aside is 'An email in an inbox that reading failed at: it is read again at next_try_at.';
comment on column recruitment.mail_set_aside.message_id is 'The message that stands for it until then. Null: it answers no email, or could not be kept.';
comment on column recruitment.mail_set_aside.tries is 'How often it was read. After the last try it is left out.';
create index mail_set_aside_due on recruitment.mail_set_aside (organization_id, inbox_id, next_try_at);
create index mail_set_aside_by_message on recruitment.mail_set_aside (organization_id, message_id) where message_id is not null;
call core.protect_tenant_table('recruitment.mail_set_aside');

alter table recruitment.message add column content_hash bytea;
comment on column recruitment.message.content_hash is
  'SHA-256 of what an inbound email says: another email under the same Message-ID has another one. Null once the prospect was erased.';
