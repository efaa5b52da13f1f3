-- Inboxes: the mailboxes that outreach is sent from and replies are read in.

create table recruitment.inbox (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  email text not null,
  from_name text not null,
  smtp jsonb not null,
  imap jsonb not null,
  oauth jsonb,
  secrets bytea not null,
  daily_limit integer not null constraint inbox_daily_limit_in_range check (daily_limit between 1 and 500),
  ramp jsonb,
  min_gap_s integer not null constraint inbox_min_gap_not_negative check (min_gap_s >= 0),
  max_gap_s integer not null,
  reply_to text,
  signature text,
  timezone text not null,
  status text not null default 'connected' constraint inbox_status_known check (status in ('connected', 'disconnected')),
  disconnected_reason text constraint inbox_disconnected_reason_known
    check (disconnected_reason in ('auth_failed', 'connection_failed', 'removed', 'disabled')),
  connected_at timestamptz(3) not null,
  disconnected_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint inbox_gaps_in_order check (max_gap_s >= min_gap_s),
  constraint inbox_disconnected_has_reason check (
    (status = 'disconnected') = (disconnected_reason is not null) and (disconnected_reason is null) = (disconnected_at is null)
  )
);
comment on table recruitment.inbox is 'A mailbox that outreach is sent from and replies are read in.';
comment on column recruitment.inbox.smtp is '{host, port, security, username}';
comment on column recruitment.inbox.imap is '{host, port, security, username}';
comment on column recruitment.inbox.oauth is '{provider, client_id}. Null: it logs in by passwords.';
comment on column recruitment.inbox.secrets is 'Passwords, or the client secret and the refresh token: JSON, AES-256-GCM with the key''s id in front.';
comment on column recruitment.inbox.ramp is '{start, step}: what it sends on its first day, and by how much more on each day after one that sent. Null: daily_limit at once.';
create unique index inbox_email_unique on recruitment.inbox (organization_id, lower(email)) where deleted_at is null;

call core.protect_tenant_table('recruitment.inbox');
