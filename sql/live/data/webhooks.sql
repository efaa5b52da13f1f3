-- Views of the event and delivery log of programs, which is kept for 30 days. Where program_id is the organization, it is of the recruitment service.

create or replace view data.event with (security_barrier = true) as
select
  e.id,
  e.position,
  e.program_id,
  e.partner_id,
  e.type,
  case
    when (select data.sees_personal()) then e.body::jsonb -> 'data'
    else e.postback_body::jsonb -> 'data'
  end as data,
  e.request_id,
  e.livemode,
  e.created_at
from webhooks.event e
where e.organization_id = (select data.organization_id())
  and e.program_id <> e.organization_id;
comment on view data.event is 'Events, in the order in which endpoints receive them. Kept for 30 days. Filter by created_at or by id.';
comment on column data.event.id is 'The event (evt_). Ids sort by time.';
comment on column data.event.position is 'Where it stands in the order of events: larger is later. Gaps mean nothing.';
comment on column data.event.program_id is 'The program that it is about (prg_).';
comment on column data.event.partner_id is 'The partner that it is about (part_). Null: none.';
comment on column data.event.type is 'What happened, such as sale.created.';
comment on column data.event.data is 'Its fields, as JSON. Unless the login was made with --personal-data: only those that partners'' postbacks receive, without emails, and null for events that postbacks do not receive.';
comment on column data.event.request_id is 'The request or scheduled run that caused it (req_, run_). Null: not known.';
comment on column data.event.livemode is 'False for a test event.';
comment on column data.event.created_at is 'When it was recorded.';

create or replace view data.webhook_endpoint with (security_barrier = true) as
select
  e.id,
  e.program_id,
  e.partner_id,
  case when (select data.sees_personal()) then split_part(e.url, '?', 1) else data.without_emails(split_part(e.url, '?', 1)) end as url,
  case when (select data.sees_personal()) then e.description else data.without_emails(e.description) end as description,
  e.event_types,
  e.status,
  case when (select data.sees_personal()) then e.disabled_reason else data.without_emails(e.disabled_reason) end as disabled_reason,
  e.secret_last_rotated_at,
  e.created_at,
  e.updated_at,
  e.personal_data
from webhooks.endpoint e
where e.organization_id = (select data.organization_id())
  and e.program_id <> e.organization_id
  and e.deleted_at is null;
comment on view data.webhook_endpoint is 'URLs that receive events. Deleted endpoints are left out.';
comment on column data.webhook_endpoint.id is 'The endpoint (whe_).';
comment on column data.webhook_endpoint.program_id is 'The program whose events it receives (prg_).';
comment on column data.webhook_endpoint.partner_id is 'The partner whose events it receives, and no others (part_): a postback. Null: not a postback.';
comment on column data.webhook_endpoint.url is 'Where events are sent, without the query, which may hold a secret. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.webhook_endpoint.description is 'Your description. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.webhook_endpoint.event_types is 'The types that it receives. Empty: all.';
comment on column data.webhook_endpoint.status is 'enabled or disabled.';
comment on column data.webhook_endpoint.disabled_reason is 'Why it is disabled. Null: it is not. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.webhook_endpoint.secret_last_rotated_at is 'When its signing secret was last rotated. Null: never.';
comment on column data.webhook_endpoint.created_at is 'When it was recorded.';
comment on column data.webhook_endpoint.updated_at is 'When it last changed.';
comment on column data.webhook_endpoint.personal_data is 'Whether it receives personal data. If not, it receives null in the fields with personal data.';

create or replace view data.webhook_delivery with (security_barrier = true) as
select
  d.id,
  d.program_id,
  d.endpoint_id,
  d.event_id,
  d.event_type,
  d.status,
  d.attempt,
  d.next_attempt_at,
  d.replay_of,
  d.created_at,
  d.updated_at
from webhooks.delivery d
where d.organization_id = (select data.organization_id())
  and d.program_id <> d.organization_id;
comment on view data.webhook_delivery is 'Events that were or will be sent to endpoints: one row for each endpoint and replay. Kept for 30 days. Filter by created_at or by id.';
comment on column data.webhook_delivery.id is 'The delivery (whd_). Ids sort by time.';
comment on column data.webhook_delivery.program_id is 'The program of its event (prg_).';
comment on column data.webhook_delivery.endpoint_id is 'The endpoint (whe_).';
comment on column data.webhook_delivery.event_id is 'The event (evt_).';
comment on column data.webhook_delivery.event_type is 'The type of the event.';
comment on column data.webhook_delivery.status is 'pending, delivered, failed or cancelled.';
comment on column data.webhook_delivery.attempt is 'Attempts so far, at most 8.';
comment on column data.webhook_delivery.next_attempt_at is 'The earliest time of the next attempt. Null: none is planned.';
comment on column data.webhook_delivery.replay_of is 'The delivery that this one replays (whd_). Null: not a replay.';
comment on column data.webhook_delivery.created_at is 'When it was recorded.';
comment on column data.webhook_delivery.updated_at is 'When it last changed.';

create or replace view data.webhook_attempt with (security_barrier = true) as
select
  a.delivery_id,
  a.attempt,
  a.at,
  a.duration_ms,
  a.status_code,
  case when (select data.sees_personal()) then a.response_body end as response_body,
  case when (select data.sees_personal()) then a.error else data.without_emails(a.error) end as error
from webhooks.attempt a
where a.organization_id = (select data.organization_id())
  -- Attempts of programs: ids of deliveries say whose they are, and attempts are partitioned by them.
  and a.delivery_id >= 'whd_' and a.delivery_id < 'whd`';
comment on view data.webhook_attempt is 'Requests to endpoints, and what they answered. Kept for 30 days. Filter by delivery_id or at.';
comment on column data.webhook_attempt.delivery_id is 'The delivery (whd_).';
comment on column data.webhook_attempt.attempt is 'Which attempt of the delivery it is: 1 to 8.';
comment on column data.webhook_attempt.at is 'When it was sent.';
comment on column data.webhook_attempt.duration_ms is 'How long it took, in milliseconds.';
comment on column data.webhook_attempt.status_code is 'The HTTP status that was answered. Null: none.';
comment on column data.webhook_attempt.response_body is 'The first 16 KiB of the answer. Personal: null unless the login was made with --personal-data.';
comment on column data.webhook_attempt.error is 'Why there was no answer, such as a timeout. Null: there was one. Emails in it are "hidden" unless the login was made with --personal-data.';
