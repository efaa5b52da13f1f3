-- Events and their delivery. The strict sequence of an endpoint is defined in webhooks.fan_out (sql/live/webhooks/fan_out.sql).

create schema webhooks;
grant usage on schema webhooks to rail_api;

create sequence webhooks.event_position;

create table webhooks.event (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  position bigint not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  type text not null,
  body text not null,
  postback_body text,
  request_id text,
  created_at timestamptz(3) not null,
  primary key (organization_id, id)
) partition by range (id);
comment on table webhooks.event is 'What happened, written in the transaction of the change it describes. Partitioned by week, kept 30 days.';
comment on column webhooks.event.position is 'Taken after the row locks on what the event describes, so that it follows the order of cause.';
comment on column webhooks.event.body is 'The exact request body that endpoints receive.';
comment on column webhooks.event.postback_body is 'The body for a partner''s postback (no email, no identity); null when the partner may not receive the event.';
create table webhooks.event_default partition of webhooks.event default;
create index event_by_program on webhooks.event (organization_id, program_id, position);
create index event_by_type on webhooks.event (organization_id, program_id, type, position);
create index event_by_partner on webhooks.event (organization_id, program_id, partner_id, position);

-- Events that no fan-out has seen. Rows live for milliseconds.
create table webhooks.pending_event (
  position bigint primary key,
  organization_id text collate "C" not null,
  event_id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  type text not null,
  for_partner boolean not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on column webhooks.pending_event.for_partner is 'Whether a postback of the partner receives it too.';

create table webhooks.endpoint (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  url text not null,
  description text,
  event_types text[] not null default '{}',
  status text not null default 'enabled' constraint endpoint_status_known check (status in ('enabled', 'disabled')),
  disabled_reason text,
  secret bytea not null,
  previous_secret bytea,
  previous_secret_expires_at timestamptz(3),
  secret_last_rotated_at timestamptz(3),
  failures_count_from timestamptz(3) not null default now(),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on column webhooks.endpoint.event_types is 'Empty: all types.';
comment on column webhooks.endpoint.failures_count_from is 'Failures before it do not count towards the switch-off: it was turned on, or its secret rotated.';
comment on column webhooks.endpoint.partner_id is 'Set: a partner''s postback, which receives that partner''s own events alone.';
comment on column webhooks.endpoint.secret is 'whsec_…, AES-256-GCM with the key''s id in front.';
create index endpoint_by_program on webhooks.endpoint (organization_id, program_id, id) where deleted_at is null;
create index endpoint_receiving on webhooks.endpoint (program_id) where deleted_at is null and status = 'enabled';

-- One row an endpoint, apart from it, because every turn of its deliveries writes here.
create table webhooks.lane (
  endpoint_id text collate "C" primary key,
  organization_id text collate "C" not null,
  last_place bigint not null default 0,
  done_place bigint not null default 0,
  lease_token bigint not null default 0,
  lease_until timestamptz,
  leased_by text collate "C",
  foreign key (organization_id, endpoint_id) references webhooks.endpoint on delete cascade
) with (fillfactor = 70);
comment on table webhooks.lane is 'An endpoint''s queue: places (done_place, last_place] wait. Whoever holds the lease is the only one who sends.';
comment on column webhooks.lane.lease_token is 'Grows with each lease: what an older lease reports is dropped.';

create table webhooks.delivery (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text not null,
  place bigint not null,
  status text not null default 'pending'
    constraint delivery_status_known check (status in ('pending', 'delivered', 'failed', 'cancelled')),
  attempt integer not null default 0,
  next_attempt_at timestamptz(3),
  replay_of text collate "C",
  request_body text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
) partition by range (id);
comment on table webhooks.delivery is 'An event on its way to an endpoint, and afterwards the log of it. Partitioned by week, kept 30 days.';
comment on column webhooks.delivery.place is 'Where it stands in the endpoint''s sequence. A retry or a replay gets a new place at the end.';
comment on column webhooks.delivery.attempt is 'Attempts made so far, 8 at most.';
comment on column webhooks.delivery.next_attempt_at is 'When a failed attempt may be repeated; null while it stands in the sequence or is settled.';
comment on column webhooks.delivery.request_body is 'The body where it is not that of a logged event: a test event.';
create table webhooks.delivery_default partition of webhooks.delivery default;
create index delivery_by_place on webhooks.delivery (endpoint_id, place);
create index delivery_by_program on webhooks.delivery (organization_id, program_id, id);
create index delivery_by_endpoint on webhooks.delivery (organization_id, endpoint_id, id);
create index delivery_by_retry on webhooks.delivery (next_attempt_at) where next_attempt_at is not null;

create table webhooks.attempt (
  organization_id text collate "C" not null,
  delivery_id text collate "C" not null,
  attempt integer not null,
  at timestamptz(3) not null,
  duration_ms integer not null,
  status_code integer,
  response_body text,
  error text,
  primary key (organization_id, delivery_id, attempt)
) partition by range (delivery_id);
comment on table webhooks.attempt is 'One request to an endpoint, and what it answered (first 16 KiB).';
create table webhooks.attempt_default partition of webhooks.attempt default;

call core.ensure_weekly_partitions('webhooks.event', 'evt', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.delivery', 'whd', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.attempt', 'whd', now(), now() + interval '5 weeks');

call core.protect_tenant_table('webhooks.event');
call core.protect_tenant_table('webhooks.pending_event');
call core.protect_tenant_table('webhooks.endpoint');
call core.protect_tenant_table('webhooks.lane');
call core.protect_tenant_table('webhooks.delivery');
call core.protect_tenant_table('webhooks.attempt');
grant usage on sequence webhooks.event_position to rail_api;
