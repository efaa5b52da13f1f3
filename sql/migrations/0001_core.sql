-- The core: tenancy, keys, idempotency, schedule, workers. It knows no product.

create schema core;

-- The API's role. It sees one organization at a time (row-level security) and may not touch the job queue's tables.
do $$
begin
  create role rail_api nologin;
exception
  when duplicate_object or unique_violation then null;
end
$$;

-- Whoever migrates runs the service, and must be able to become the API's role.
do $$
begin
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant rail_api to %I', current_user);
  end if;
end
$$;

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

-- Called by a migration for each table that belongs to an organization: the API's role sees its own rows alone.
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

-- Makes the weekly partitions of a table that is partitioned by range (id), from the week of `first` to the week of `last`.
create procedure core.ensure_weekly_partitions(parent regclass, prefix text, first timestamptz, last timestamptz)
language plpgsql
as $$
declare
  week timestamptz;
  name text;
  schema_name text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = parent);
  parent_name text := (select c.relname from pg_class c where c.oid = parent);
begin
  for week in
    select generate_series(date_trunc('week', first at time zone 'UTC'), date_trunc('week', last at time zone 'UTC'), '1 week')
      at time zone 'UTC'
  loop
    name := parent_name || '_' || to_char(week at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(format('%I.%I', schema_name, name)) is null then
      execute format(
        'create table %I.%I partition of %s for values from (%L) to (%L)',
        schema_name, name, parent,
        prefix || '_' || core.id_time_part(week),
        prefix || '_' || core.id_time_part(week + interval '7 days')
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
  role text not null default 'owner' constraint user_role_known check (role in ('owner', 'member')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table core.user_account is 'A person in an organization (usr_). The owner is emailed.';

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
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on column core.api_key.secret_sha256 is 'SHA-256 of the whole key; the key itself is shown once and never stored.';
comment on column core.api_key.rate_limit is 'Requests in each second of the database''s clock.';

-- Unlogged: what it holds is worth one second. A commit that touches only this table does not wait for the disk.
create unlogged table core.rate_limit_window (
  api_key_id text collate "C" primary key,
  second bigint not null,
  used integer not null
) with (fillfactor = 50);
comment on table core.rate_limit_window is 'Requests that a key made in the current second, counted exactly over all API replicas.';

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
comment on table core.scheduled_run is 'One row a tick, whoever ticked first; run_ ids are the request ids of the events that a run causes.';

create sequence core.worker_lock_key;
create table core.worker (
  id text collate "C" primary key,
  lock_key integer not null default nextval('core.worker_lock_key') constraint worker_lock_key_unique unique,
  pool_ids text[] not null default '{}',
  host text not null,
  process_id integer not null,
  started_at timestamptz(3) not null default now()
);
comment on table core.worker is 'Worker processes. Each holds the session advisory lock (classid 1, lock_key) for as long as it lives.';
comment on column core.worker.pool_ids is 'graphile-worker pools of this process: what they hold locked is freed when the process is dead.';

call core.protect_tenant_table('core.idempotency_key');
call core.protect_tenant_table('core.api_key');
-- Of keys the API may see and change whether they must sign, and nothing else.
revoke all on core.api_key from rail_api;
grant select (organization_id, id, signature_required, updated_at), update (signature_required, updated_at) on core.api_key to rail_api;
