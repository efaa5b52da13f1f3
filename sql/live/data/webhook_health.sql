-- Health of endpoints: as in the rollups by day in daily.sql, a condition on the day leaves days out before their rows are read.

create or replace view data.webhook_health with (security_barrier = true) as
select
  e.id as endpoint_id,
  d.day,
  h.deliveries,
  h.delivered,
  h.pending,
  h.failed,
  h.cancelled,
  h.retried,
  h.attempts,
  case when h.delivered + h.failed = 0 then null
    else div(h.delivered * 20000 + h.delivered + h.failed, ((h.delivered + h.failed) * 2)::numeric) end::bigint as delivered_bps,
  h.last_delivered_at
from webhooks.endpoint e
cross join lateral core.days_between(
  (select x.created_at - interval '2 hours' from webhooks.delivery x where x.organization_id = (select data.organization_id()) and x.endpoint_id = e.id order by x.id limit 1),
  (select x.created_at + interval '2 hours' from webhooks.delivery x where x.organization_id = (select data.organization_id()) and x.endpoint_id = e.id order by x.id desc limit 1),
  'whd'
) as d
cross join lateral (
  select
    count(*) as deliveries,
    count(*) filter (where x.status = 'delivered') as delivered,
    count(*) filter (where x.status = 'pending') as pending,
    count(*) filter (where x.status = 'failed') as failed,
    count(*) filter (where x.status = 'cancelled') as cancelled,
    count(*) filter (where x.attempt > 1) as retried,
    sum(x.attempt)::bigint as attempts,
    max(x.updated_at) filter (where x.status = 'delivered') as last_delivered_at
  from webhooks.delivery x
  where x.organization_id = (select data.organization_id()) and x.endpoint_id = e.id
    and x.id >= d.first_id and x.id < d.after_id and x.created_at >= d.starts_at and x.created_at < d.ends_at
  having count(*) > 0
) as h
where e.organization_id = (select data.organization_id())
  and e.program_id <> e.organization_id;
comment on view data.webhook_health is 'Deliveries to each endpoint and their outcomes, by day (UTC) on which they were created. How long each request took is in webhook_attempt.';
comment on column data.webhook_health.endpoint_id is 'The endpoint (whe_).';
comment on column data.webhook_health.day is 'The day (UTC) on which the deliveries were created.';
comment on column data.webhook_health.deliveries is 'How many deliveries.';
comment on column data.webhook_health.delivered is 'Deliveries that were answered 2xx.';
comment on column data.webhook_health.pending is 'Deliveries that are not sent yet, or are to be retried.';
comment on column data.webhook_health.failed is 'Deliveries that failed for good.';
comment on column data.webhook_health.cancelled is 'Deliveries that were not sent, because the endpoint was disabled or deleted.';
comment on column data.webhook_health.retried is 'Deliveries that were sent more than once.';
comment on column data.webhook_health.attempts is 'Requests that were made.';
comment on column data.webhook_health.delivered_bps is 'delivered as a share of delivered and failed together, in basis points: 9900 is 99 %. Null: there are neither yet.';
comment on column data.webhook_health.last_delivered_at is 'When a delivery of the day last succeeded. Null: none did.';
