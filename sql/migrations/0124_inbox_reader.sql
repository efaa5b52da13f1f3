-- Which worker reads an inbox, when an inbox that could not be read is tried again, and the email that it fails at.

create table recruitment.inbox_reader (
  organization_id text collate "C" not null references core.organization on delete cascade,
  inbox_id text collate "C" not null,
  worker_id text collate "C",
  refused integer not null default 0 constraint inbox_reader_refused_not_negative check (refused >= 0),
  failed integer not null default 0 constraint inbox_reader_failed_not_negative check (failed >= 0),
  unreachable_since timestamptz(3),
  next_try_at timestamptz(3) not null default now(),
  stuck_folder text,
  stuck_uid bigint,
  stuck_tries integer not null default 0 constraint inbox_reader_stuck_tries_not_negative check (stuck_tries >= 0),
  primary key (organization_id, inbox_id),
  constraint inbox_reader_inbox foreign key (organization_id, inbox_id) references recruitment.inbox (organization_id, id) on delete cascade
);
comment on table recruitment.inbox_reader is 'Which worker holds the IMAP connection of an inbox.';
comment on column recruitment.inbox_reader.worker_id is 'The worker that reads the inbox. Null, or a worker that is gone: any may take it.';
comment on column recruitment.inbox_reader.refused is 'Logins that the IMAP server refused in a row: the third disconnects the inbox.';
comment on column recruitment.inbox_reader.failed is 'Connections that failed in a row: each waits longer than the one before.';
comment on column recruitment.inbox_reader.unreachable_since is 'Since when no login succeeds: 15 minutes disconnect the inbox.';
comment on column recruitment.inbox_reader.next_try_at is 'The earliest time of the next connection.';
comment on column recruitment.inbox_reader.stuck_uid is 'The email that reading failed at, in stuck_folder. Null: none.';
comment on column recruitment.inbox_reader.stuck_tries is 'How often it failed: less of it is fetched each time.';
create index inbox_reader_by_worker on recruitment.inbox_reader (worker_id);
create index inbox_connected on recruitment.inbox (organization_id, id) where status = 'connected' and deleted_at is null;
call core.protect_tenant_table('recruitment.inbox_reader');
