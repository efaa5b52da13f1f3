-- Events and their delivery. The strict sequence of an endpoint is defined in webhooks.fan_out (sql/live/webhooks/fan_out.sql).

create schema webhooks;
grant usage on schema webhooks to rail_api;

create sequence webhooks.event_position;
create sequence webhooks.queue_position;
comment on sequence webhooks.queue_position is
  'Positions in the queues of all endpoints, taken under the fan-out''s advisory lock: they are committed in their order.';

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
  traceparent text,
  livemode boolean not null default true,
  chat_text text,
  without_personal json,
  created_at timestamptz(3) not null,
  primary key (organization_id, id)
) partition by range (id);
comment on table webhooks.event is 'What happened, written in the transaction of the change it describes. Partitioned by week, kept 30 days.';
comment on column webhooks.event.position is 'Taken after the row locks on what the event describes, so that it follows the order of cause.';
comment on column webhooks.event.program_id is
  'The subject of the event: a program, or another product''s subject, else the organization.';
comment on column webhooks.event.partner_id is
  'Whose postbacks receive it too: a partner, or whoever has postbacks in another product; null: nobody''s.';
comment on column webhooks.event.body is 'The exact request body that endpoints receive.';
comment on column webhooks.event.postback_body is
  'The body for a partner''s postback (no email, no identity); null when the partner may not receive the event.';
comment on column webhooks.event.traceparent is
  'Where its cause stands in a trace (W3C Trace Context), so that its deliveries belong to that. Null: nothing is traced.';
comment on column webhooks.event.chat_text is 'The text for team chats; null where the product has none.';
comment on column webhooks.event.without_personal is
  'The fields of data as endpoints without personal data receive them, where they differ. Null: none does.';
create index event_by_partner on webhooks.event (organization_id, program_id, partner_id, position, id) where partner_id is not null;
create index event_by_program on webhooks.event (organization_id, program_id, position, id) include (created_at);
create index event_by_time on webhooks.event using brin (created_at) with (autosummarize = on, pages_per_range = 16);
create index event_by_type on webhooks.event (organization_id, program_id, type, position, id);
call core.protect_tenant_table('webhooks.event');

create table webhooks.event_default partition of webhooks.event default;

create table webhooks.pending_event (
  position bigint primary key,
  organization_id text collate "C" not null,
  event_id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  type text not null,
  for_partner boolean not null,
  livemode boolean not null default true,
  delivery_prefix text not null default 'whd'
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table webhooks.pending_event is 'Events whose deliveries are not written yet. Rows live for milliseconds.';
comment on column webhooks.pending_event.for_partner is 'Whether a postback of the partner receives it too.';
comment on column webhooks.pending_event.delivery_prefix is 'Of the ids of its deliveries.';
call core.protect_tenant_table('webhooks.pending_event');

create table webhooks.endpoint (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  program_id text collate "C" not null,
  partner_id text collate "C",
  url text not null,
  description text,
  event_types text[] not null default '{}'::text[],
  status text not null default 'enabled' constraint endpoint_status_known check (status in ('enabled', 'disabled')),
  disabled_reason text,
  secret bytea not null,
  previous_secret bytea,
  previous_secret_expires_at timestamptz(3),
  secret_last_rotated_at timestamptz(3),
  failures_count_from timestamptz(3) not null default now(),
  https_only boolean not null default false,
  livemode boolean not null default true,
  listens_from bigint not null default nextval('webhooks.event_position'::regclass),
  type text not null default 'live' constraint endpoint_type_known check (type in ('live', 'test', 'slack', 'discord', 'teams')),
  listens_until bigint,
  personal_data boolean not null default true,
  cancelled_until bigint not null default 0,
  check_failures_from timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table webhooks.endpoint is 'A URL that receives the events of a program, or of one partner (a postback).';
comment on column webhooks.endpoint.program_id is
  'The subject that it listens to: a program, or another product''s subject, else the organization.';
comment on column webhooks.endpoint.partner_id is
  'Set: a postback, which receives the events of this partner (in another product: of whoever has postbacks there) alone.';
comment on column webhooks.endpoint.url is 'Where events are sent. Of a team chat: its host and its last four characters; the address is in secret.';
comment on column webhooks.endpoint.event_types is 'Empty: all types.';
comment on column webhooks.endpoint.secret is 'whsec_…, or the address of a team chat: AES-256-GCM with the key''s id in front.';
comment on column webhooks.endpoint.failures_count_from is
  'Failures before it do not count towards the switch-off: it was turned on, or its secret rotated.';
comment on column webhooks.endpoint.https_only is 'Nothing is sent to it over http, whatever its URL says.';
comment on column webhooks.endpoint.livemode is 'Whether it receives live events or those of tests: never both.';
comment on column webhooks.endpoint.listens_from is 'The position in the event log from which on it receives.';
comment on column webhooks.endpoint.type is
  'test: receives the events of tests alone. slack, discord, teams: an incoming webhook of that tool, whose whole address is the secret.';
comment on column webhooks.endpoint.listens_until is
  'The position in the event log up to which it receives; null: it goes on. Set while the plan does not include webhooks.';
comment on column webhooks.endpoint.personal_data is
  'False: personal fields are null in what it receives, and emails in texts are hidden. Never changes, so that the log shows what was sent.';
comment on column webhooks.endpoint.cancelled_until is
  'Deliveries before this queue position, also those that wait to be tried again, are from before it was last enabled: they are cancelled.';
comment on column webhooks.endpoint.check_failures_from is
  'Before it its failures cannot span long enough for it to be turned off: they are not looked at. Null: not known.';
create index endpoint_by_program on webhooks.endpoint (organization_id, program_id, id) include (created_at, status, partner_id)
  where deleted_at is null;
create index endpoint_disabled on webhooks.endpoint (organization_id, program_id, id) where status = 'disabled' and deleted_at is null;
create index endpoint_by_owner on webhooks.endpoint (organization_id, program_id, coalesce(partner_id, '')) where deleted_at is null;
call core.protect_tenant_table('webhooks.endpoint');

create table webhooks.endpoint_queue (
  endpoint_id text collate "C" primary key,
  organization_id text collate "C" not null,
  done_position bigint not null default 0,
  lease_token bigint not null default 0,
  lease_until timestamptz,
  leased_by text collate "C",
  slow boolean not null default false,
  foreign key (organization_id, endpoint_id) references webhooks.endpoint on delete cascade
) with (fillfactor = 70);
comment on table webhooks.endpoint_queue is
  'Who sends the deliveries of an endpoint''s queue: whoever holds the lease is the only one who does. Apart from the endpoint, because every run writes here.';
comment on column webhooks.endpoint_queue.done_position is 'Every delivery up to this queue position has its result, or waits to be tried again.';
comment on column webhooks.endpoint_queue.lease_token is 'Grows with each lease: what an older lease reports is dropped.';
comment on column webhooks.endpoint_queue.slow is 'The last attempt took long: its runs have slots of their own, and keep nobody else waiting.';
call core.protect_tenant_table('webhooks.endpoint_queue');

-- A delivery is updated once or twice, and none of its indexed columns then: with room on its page (fillfactor), no index is touched.
create table webhooks.delivery (
  organization_id text collate "C" not null,
  id text collate "C" not null,
  program_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text not null,
  queue_position bigint,
  status text not null default 'pending' constraint delivery_status_known check (status in ('pending', 'delivered', 'failed', 'cancelled')),
  attempt integer not null default 0,
  next_attempt_at timestamptz(3),
  replay_of text collate "C",
  request_body text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
) partition by range (id);
comment on table webhooks.delivery is 'An event on its way to an endpoint, and afterwards the log of it. Partitioned by week, kept 30 days.';
comment on column webhooks.delivery.program_id is 'What its event is about, as in webhooks.event.';
comment on column webhooks.delivery.queue_position is
  'Its position in the endpoint''s queue, or the last one it had. A retry or a replay is enqueued at the end.';
comment on column webhooks.delivery.attempt is 'Attempts made so far, 8 at most.';
comment on column webhooks.delivery.next_attempt_at is 'When a failed attempt may be repeated; null while it is queued or has its final status.';
comment on column webhooks.delivery.request_body is 'The body where it is not that of a logged event: a test event.';
create index delivery_by_endpoint on webhooks.delivery (organization_id, endpoint_id, id) include (program_id, created_at, event_type);
create index delivery_by_program on webhooks.delivery (organization_id, program_id, id) include (created_at, event_type);
create index delivery_by_retry on webhooks.delivery (next_attempt_at) where next_attempt_at is not null;
create index delivery_by_time on webhooks.delivery using brin (created_at) with (autosummarize = on, pages_per_range = 16);
call core.protect_tenant_table('webhooks.delivery');

create table webhooks.delivery_default partition of webhooks.delivery default with (fillfactor = 60);

create table webhooks.queued_delivery (
  endpoint_id text collate "C" not null,
  queue_position bigint not null,
  organization_id text collate "C" not null,
  delivery_id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text not null,
  attempt integer not null default 0,
  request_body text,
  primary key (endpoint_id, queue_position)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
comment on table webhooks.queued_delivery is 'Deliveries that wait to be sent, in the queues of their endpoints. Rows go when the result is written.';
comment on column webhooks.queued_delivery.attempt is 'Attempts made before.';
comment on column webhooks.queued_delivery.request_body is 'The body where it is not that of a logged event: a test event.';
call core.protect_tenant_table('webhooks.queued_delivery');

create table webhooks.attempt (
  organization_id text collate "C" not null,
  delivery_id text collate "C" not null,
  attempt integer not null,
  at timestamptz(3) not null,
  duration_ms integer not null,
  status_code integer,
  response_body text,
  error text,
  url text,
  rail_signature text,
  webhook_signature text,
  primary key (organization_id, delivery_id, attempt)
) partition by range (delivery_id);
comment on table webhooks.attempt is 'One request to an endpoint, and what it answered (first 16 KiB).';
comment on column webhooks.attempt.url is 'Where it was sent to. Of a team chat, a hint: the address is a secret.';
comment on column webhooks.attempt.rail_signature is 'The header Rail-Signature. Null: none was sent, as to a team chat.';
comment on column webhooks.attempt.webhook_signature is 'The header webhook-signature. Null: none was sent.';
create index attempt_by_time on webhooks.attempt using brin (at) with (autosummarize = on, pages_per_range = 16);
call core.protect_tenant_table('webhooks.attempt');

create table webhooks.attempt_default partition of webhooks.attempt default;

-- The prefixes of each product's events and deliveries.
call core.ensure_weekly_partitions('webhooks.event', 'evt', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.delivery', 'whd', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.attempt', 'whd', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.event', 'fev', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.delivery', 'fwd', now(), now() + interval '5 weeks');
call core.ensure_weekly_partitions('webhooks.attempt', 'fwd', now(), now() + interval '5 weeks');
