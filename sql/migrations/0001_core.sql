-- The core: tenancy, keys, idempotency, schedule, workers, mail on its way out. It knows no product.
--
-- Every file of this folder runs once, in order, and is never edited afterwards: what changes comes in a file of its own. Functions, views and
-- triggers are in sql/live. 'rail migrate' makes the roles before, and gives them their privileges afterwards (sql/live/core/privileges.sql).

comment on table migration.applied is 'The files of sql/migrations and sql/live that ran on this database, with the hash of their text.';

create schema core;
grant usage on schema core to rail_api;

-- An id's text: prefix, then 26 characters of Crockford base32 over a UUIDv7 (the TypeID format). Its first ten characters
-- are the milliseconds since 1970, so ids of one prefix sort by time, and tables can be partitioned by id.
create function core.id_time_part(at timestamptz) returns text
language sql immutable parallel safe
return (
  select string_agg(
    substr('0123456789abcdefghjkmnpqrstvwxyz', (((extract(epoch from at) * 1000)::bigint >> (5 * digit)) & 31)::int + 1, 1),
    '' order by digit desc
  )
  from generate_series(0, 9) as digit
);

-- Called for each table that belongs to an organization: the API's role sees its own rows alone.
create procedure core.protect_tenant_table(tenant_table regclass)
language plpgsql
as $$
begin
  execute format('alter table %s enable row level security', tenant_table);
  execute format(
    'create policy own_organization on %s to rail_api '
    'using (organization_id = current_setting(''rail.organization_id'', true)) '
    'with check (organization_id = current_setting(''rail.organization_id'', true))',
    tenant_table
  );
  execute format('grant select, insert, update, delete on %s to rail_api', tenant_table);
end
$$;

-- Makes the weekly partitions of a table that is partitioned by range (id), from the week of `first` to the week of `last`. Those of the
-- table's first prefix are called by their week alone; those of a further prefix carry it in their names. Who reads or writes the table queues
-- up behind the lock that a new partition takes, so that it is not waited for: it fails with 55P03 instead, and its job runs again. A week of
-- which the default partition has rows already (no worker ran for weeks, or the clock was wrong) stays in it: Postgres would refuse its partition.
create procedure core.ensure_weekly_partitions(parent regclass, prefix text, first timestamptz, last timestamptz)
language plpgsql
set lock_timeout = '500ms'
as $$
declare
  week timestamptz;
  name text;
  first_id text;
  after_id text;
  in_default boolean := false;
  rest regclass := (select p.partdefid::regclass from pg_partitioned_table p where p.partrelid = parent and p.partdefid <> 0);
  key text := (
    select a.attname from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
    where p.partrelid = parent
  );
  schema_name text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = parent);
  parent_name text := (select c.relname from pg_class c where c.oid = parent);
  is_further boolean := exists (
    select
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = parent
      and c.relname ~ ('^' || parent_name || '_\d{8}$')
      -- FOR VALUES FROM ('evt_01k…') TO ('evt_01k…')
      and not starts_with(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2), prefix || '_')
  );
  infix text := case when is_further then '_' || prefix else '' end;
begin
  for week in
    select generate_series(date_trunc('week', first at time zone 'UTC'), date_trunc('week', last at time zone 'UTC'), '1 week')
      at time zone 'UTC'
  loop
    name := parent_name || infix || '_' || to_char(week at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(format('%I.%I', schema_name, name)) is null then
      first_id := prefix || '_' || core.id_time_part(week);
      after_id := prefix || '_' || core.id_time_part(week + interval '7 days');
      if rest is not null then
        execute format('select exists (select from %s where %I >= %L and %I < %L)', rest, key, first_id, key, after_id) into in_default;
      end if;
      continue when in_default;
      execute format('create table %I.%I partition of %s for values from (%L) to (%L)', schema_name, name, parent, first_id, after_id);
      -- Without a policy of its own: whoever is granted a partition sees nothing, and reads through the parent.
      execute format('alter table %I.%I enable row level security', schema_name, name);
      -- Postgres samples no values where its parent says so: it does not inherit that.
      execute coalesce(
        (
          select format('alter table %I.%I ', schema_name, name) || string_agg(format('alter column %I set statistics 0', a.attname), ', ')
          from pg_attribute a
          where a.attrelid = parent and a.attstattarget = 0 and a.attnum > 0 and not a.attisdropped
        ),
        'select'
      );
    end if;
  end loop;
end
$$;


create table core.organization (
  id text collate "C" primary key,
  name text not null constraint organization_name_not_blank check (name <> ''),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
comment on table core.organization is 'A tenant: it owns everything. An id of another organization answers 404.';

create table core.user_account (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  email text not null,
  name text,
  role text not null default 'owner' constraint user_role_known check (role in ('owner', 'admin', 'finance', 'member', 'viewer')),
  totp_secret bytea,
  totp_step bigint,
  removed_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table core.user_account is 'A person in an organization (usr_). The owner is emailed. One who was removed stays, for what they did.';
comment on column core.user_account.totp_secret is 'The secret of the app that makes their codes, encrypted. Null: none is set up.';
comment on column core.user_account.totp_step is 'The time step of the last code that was accepted: none is accepted twice.';
create index user_account_by_email on core.user_account (lower(email)) where removed_at is null;

create table core.api_key (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  name text not null,
  mode text not null constraint api_key_mode_known check (mode in ('live', 'test')),
  secret_sha256 bytea not null constraint api_key_secret_unique unique,
  scopes text[] not null,
  rate_limit integer not null default 25 constraint api_key_rate_limit_positive check (rate_limit > 0),
  signature_required boolean not null default false,
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  user_id text collate "C",
  expires_at timestamptz(3),
  ip_ranges text[],
  previous_secret_sha256 bytea constraint api_key_previous_secret_unique unique,
  previous_secret_expires_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint api_key_user foreign key (organization_id, user_id) references core.user_account,
  constraint api_key_ip_ranges_not_empty check (ip_ranges <> '{}'),
  constraint api_key_previous_secret_ends check (num_nonnulls(previous_secret_sha256, previous_secret_expires_at) <> 1)
);
create index api_key_by_expiry on core.api_key (expires_at) where revoked_at is null;
comment on table core.api_key is 'API keys of organizations (key_): what each may do, and how often. Only a hash of a key is stored.';
comment on column core.api_key.secret_sha256 is 'SHA-256 of the whole key; the key itself is shown once and never stored.';
comment on column core.api_key.rate_limit is 'Requests in each second of the database''s clock.';
comment on column core.api_key.expires_at is 'From when on the key is refused. Null: it does not expire.';
comment on column core.api_key.ip_ranges is 'The networks that requests with the key may come from, in CIDR notation. Null: from everywhere.';
comment on column core.api_key.previous_secret_sha256 is 'SHA-256 of the key before it was rotated, which is valid beside the new one for a while.';
comment on column core.api_key.user_id is 'The person whose key it is. Null: a key of no person, which cannot approve payouts.';
call core.protect_tenant_table('core.api_key');
-- The columns of keys that the API may see and change are in sql/live/core/privileges.sql.
revoke all on core.api_key from rail_api;

create table core.sign_in_link (
  token_sha256 bytea primary key,
  organization_id text collate "C" not null,
  user_id text collate "C" not null,
  used_at timestamptz(3),
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  foreign key (organization_id, user_id) references core.user_account on delete cascade
);
comment on table core.sign_in_link is 'Links by which a person of an organization signs in to the dashboard, each once. Only a hash of the token is stored.';
create index sign_in_link_by_age on core.sign_in_link (created_at);
create index sign_in_link_by_user on core.sign_in_link (organization_id, user_id, created_at);
call core.protect_tenant_table('core.sign_in_link');
revoke all on core.sign_in_link from rail_api;

create table core.session (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  token_sha256 bytea not null constraint session_token_unique unique,
  user_id text collate "C",
  partner_id text collate "C",
  user_agent text not null,
  confirmed_at timestamptz(3),
  wrong_codes integer not null default 0,
  last_seen_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint session_of_user foreign key (organization_id, user_id) references core.user_account on delete cascade,
  constraint session_is_of_one check (num_nonnulls(user_id, partner_id) = 1)
);
comment on table core.session is 'Sessions of people (ses_): of a user in the dashboard, or of a partner in the portal. Only a hash of the cookie is stored.';
comment on column core.session.confirmed_at is 'When the person last proved with a code of their app that it is them.';
comment on column core.session.wrong_codes is 'Since the last right one: the fifth ends the session.';
create index session_by_age on core.session (created_at);
create index session_by_user on core.session (organization_id, user_id) where user_id is not null;
create index session_by_partner on core.session (organization_id, partner_id) where partner_id is not null;
call core.protect_tenant_table('core.session');
-- The columns of sessions that a page may see and change are in sql/live/core/privileges.sql.
revoke all on core.session from rail_api;

create table core.audit_entry (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  api_key_id text collate "C",
  user_id text collate "C",
  partner_id text collate "C",
  operation text not null,
  object_id text collate "C",
  fields text[] not null,
  request_id text collate "C",
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table core.audit_entry is 'The audit log (aud_): who changed what, written in the transaction of the change. Entries are only added, and deleted when they are old.';
comment on column core.audit_entry.api_key_id is 'Null: it was changed on a page, by the user or the partner, or on the command line, where both are null too.';
comment on column core.audit_entry.partner_id is 'The partner who changed it in the portal.';
comment on column core.audit_entry.fields is 'The names of the fields of the body: no values, which may be personal.';
create index audit_entry_by_age on core.audit_entry (created_at);
create index audit_entry_by_key on core.audit_entry (organization_id, api_key_id, id);
create index audit_entry_by_user on core.audit_entry (organization_id, user_id, id);
create index audit_entry_by_object on core.audit_entry (organization_id, object_id, id);
create index audit_entry_by_operation on core.audit_entry (organization_id, operation, id);
call core.protect_tenant_table('core.audit_entry');

-- Unlogged: what it holds is worth one second. A commit that touches only this table does not wait for the disk. A row of its own for each second:
-- versions that an open transaction might still see are not walked past by the requests of later seconds.
create unlogged table core.rate_limit_window (
  second bigint not null,
  api_key_id text collate "C" not null,
  granted integer not null,
  used integer not null,
  primary key (second, api_key_id)
) with (fillfactor = 50);
comment on table core.rate_limit_window is
  'Requests that a key may make in a second, counted exactly over all API replicas. Seconds that are over are deleted.';
comment on column core.rate_limit_window.granted is 'To the process that asked last.';
comment on column core.rate_limit_window.used is 'What was granted in all.';

create table core.idempotency_key (
  organization_id text collate "C" not null references core.organization on delete cascade,
  key text not null,
  fingerprint bytea not null,
  status integer not null,
  reply bytea not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, key)
);
comment on table core.idempotency_key is 'First replies, written in the transaction of their effect; replayed for 24 hours.';
comment on column core.idempotency_key.fingerprint is 'SHA-256 of method, path and raw body.';
comment on column core.idempotency_key.reply is 'The body as sent, encrypted: it may hold a secret that is shown once.';
create index idempotency_key_by_age on core.idempotency_key (created_at);
call core.protect_tenant_table('core.idempotency_key');

create table core.deleted_object (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  parent_id text collate "C" not null,
  object text,
  deleted_at timestamptz(3) not null,
  changed_in xid8 not null default pg_current_xact_id(),
  primary key (organization_id, id)
);
comment on table core.deleted_object is 'Ids of objects whose rows are deleted outright: they stay cursors of the lists that they were in.';
comment on column core.deleted_object.parent_id is 'Whose list it was in: the id of its program.';
comment on column core.deleted_object.object is 'The type of the object.';
comment on column core.deleted_object.changed_in is 'The transaction that deleted it.';
create index deleted_object_by_change on core.deleted_object (organization_id, changed_in);
call core.protect_tenant_table('core.deleted_object');

create table core.export_position (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  resource text not null,
  snapshot pg_snapshot not null,
  epoch text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table core.export_position is
  'Positions that the change feed gave out (pos_). A database that was restored to an earlier time lacks those of later, and refuses them.';
comment on column core.export_position.snapshot is 'What was visible to the export that gave it out: the next one gives what was not.';
comment on column core.export_position.epoch is 'The database that the transactions of the snapshot are of: see core.database_epoch().';
create index export_position_by_age on core.export_position (created_at);
call core.protect_tenant_table('core.export_position');

create table core.schedule (
  name text primary key,
  since timestamptz(3) not null
);
comment on table core.schedule is 'Scheduled jobs and the time since when each is known: what was missed after it is caught up.';

create table core.scheduled_run (
  id text collate "C" primary key,
  name text not null references core.schedule,
  tick timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  constraint scheduled_run_once unique (name, tick)
);
create index scheduled_run_by_age on core.scheduled_run (created_at);
comment on table core.scheduled_run is 'One row a tick, whoever ticked first; run_ ids are the request ids of the events that a run causes.';

create sequence core.worker_lock_key;
create table core.worker (
  id text collate "C" primary key,
  lock_key integer not null default nextval('core.worker_lock_key'::regclass) constraint worker_lock_key_unique unique,
  pool_ids text[] not null default '{}'::text[],
  host text not null,
  process_id integer not null,
  started_at timestamptz(3) not null default now()
);
comment on table core.worker is 'Worker processes. Each holds the session advisory lock (classid 1, lock_key) for as long as it lives.';
comment on column core.worker.pool_ids is 'graphile-worker pools of this process: what they hold locked is freed when the process is dead.';

create table core.metrics_reader (
  id boolean primary key default true constraint metrics_reader_is_one_row check (id),
  process text not null,
  until timestamptz(3) not null
);
comment on table core.metrics_reader is 'The process whose /metrics shows what is in the database, the same for all: one of them reads it.';
comment on column core.metrics_reader.until is 'When another process may take its place: each scrape postpones it.';
insert into core.metrics_reader (process, until) values ('', now());

create table core.audit_result (
  id boolean primary key default true constraint audit_result_is_one_row check (id),
  finished_at timestamptz(3) not null default now(),
  violations bigint not null
);
comment on table core.audit_result is 'What the last ''rail audit'' found that read everything.';

-- Unlogged: what it holds is worth some minutes.
create unlogged table core.process (
  name text collate "C" primary key,
  role text not null constraint process_role_known check (role in ('start', 'api', 'worker')),
  version text not null,
  connections integer not null constraint process_connections_positive check (connections > 0),
  clock_skew_ms integer not null,
  started_at timestamptz(3) not null default now(),
  seen_at timestamptz(3) not null default now()
);
comment on table core.process is 'Processes that run until they are stopped, by the name of their connections. Each writes once a minute that it lives.';
comment on column core.process.connections is 'How many it may open: DATABASE_POOL_SIZE.';
comment on column core.process.clock_skew_ms is 'How far its clock is ahead of Postgres''; 0 while it differs by no more than it may.';

-- Requests have no business here; should one ever get any, it sees its own organization alone.
create table core.outgoing_mail (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  recipient text
    constraint outgoing_mail_recipient_is_one_address check (recipient ~ '^[^[:space:][:cntrl:]<>()",:;]+@[^[:space:][:cntrl:]<>()",:;]+$'),
  subject text not null constraint outgoing_mail_subject_is_one_line check (subject <> '' and subject !~ '[[:cntrl:]]'),
  text text not null,
  sent_at timestamptz(3),
  attempts integer not null default 0,
  error text,
  attachment_name text,
  attachment_type text,
  attachment bytea,
  html text,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint outgoing_mail_attachment_is_whole check (num_nonnulls(attachment_name, attachment_type, attachment) in (0, 3))
);
comment on table core.outgoing_mail is 'Mail to people of an organization, in plain text.';
comment on column core.outgoing_mail.id is 'The Message-ID follows from it, so that a mail which is sent twice can be known as one.';
comment on column core.outgoing_mail.recipient is 'Null: the organization has nobody to write to, and the mail is logged instead.';
comment on column core.outgoing_mail.sent_at is 'When the SMTP server took it. Null with an error: not sent, or not yet.';
comment on column core.outgoing_mail.attempts is 'Times that it was handed to the SMTP server, counted before each.';
comment on column core.outgoing_mail.attachment is 'The bytes of a file that goes with it, the same each time that it is sent.';
comment on column core.outgoing_mail.html is 'The same as the text, for mail programs that show HTML. Null: there is the text alone.';
create index outgoing_mail_by_age on core.outgoing_mail (created_at);
call core.protect_tenant_table('core.outgoing_mail');
revoke all on core.outgoing_mail from rail_api;

create table core.encryption_check (
  id boolean primary key default true constraint encryption_check_is_one_row check (id),
  value bytea not null
);
comment on table core.encryption_check is
  'A known value, encrypted with the first key of RAIL_ENCRYPTION_KEY: what processes compare their keys with at their start.';

create table core.data_login (
  role_name text collate "C" primary key,
  organization_id text collate "C" not null references core.organization on delete cascade,
  name text not null,
  sees_personal boolean not null default false,
  statement_timeout_ms integer not null constraint data_login_statement_timeout_positive check (statement_timeout_ms > 0),
  connection_limit integer not null constraint data_login_connection_limit_positive check (connection_limit > 0),
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  verifier text,
  created_at timestamptz(3) not null default now()
);
comment on table core.data_login is
  'Logins of data teams: which organization''s rows a Postgres role sees through the views of schema data. Written by ''rail data user'' alone.';
comment on column core.data_login.role_name is 'The Postgres role. No setting of a session stands in for it.';
comment on column core.data_login.sees_personal is 'Whether emails, names and other personal columns are shown to it.';
comment on column core.data_login.statement_timeout_ms is
  'How long a statement of it may run: a role can undo its own setting, so a worker ends what runs longer.';
create index data_login_by_organization on core.data_login (organization_id);
call core.protect_tenant_table('core.data_login');
revoke all on core.data_login from rail_api;

create table core.cluster (
  system_identifier bigint primary key,
  timeline integer,
  database_oid bigint,
  table_oid bigint,
  is_synchronous boolean not null default false,
  beat bigint not null default 0,
  beat_at timestamptz(3) not null default now(),
  held_since timestamptz(3),
  held_for text,
  state_at timestamptz(3),
  restored_at timestamptz(3),
  payouts_compared boolean not null default true
);
comment on table core.cluster is
  'One row: where this database was seen last. A dump that was restored elsewhere has other numbers of transactions (core.adopt()), and a state that was restored has forgotten what was sent and paid since (core.hold()).';
comment on column core.cluster.database_oid is 'Null: not seen yet.';
comment on column core.cluster.is_synchronous is 'Whether commits waited for a replica when a process looked last: then one that is promoted has lost none of them.';
comment on column core.cluster.beat is 'Counted up by each process every ten seconds.';
comment on column core.cluster.held_since is 'When it was found to be restored: emails and payouts are held until an operator resumes them.';
comment on column core.cluster.state_at is 'The last beat of the state that was restored: what happened after it may be lost.';
comment on column core.cluster.payouts_compared is 'Whether an operator has compared what providers have paid since state_at with what is known here.';
comment on column core.cluster.restored_at is 'When it was last found to be restored, and resumed since: what is older may have been sent or paid before.';
