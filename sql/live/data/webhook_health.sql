-- How endpoints answer.

create or replace view data.webhook_health with (security_barrier = true) as
select
  d.endpoint_id,
  (d.created_at at time zone 'UTC')::date as day,
  count(*) as deliveries,
  count(*) filter (where d.status = 'delivered') as delivered,
  count(*) filter (where d.status = 'pending') as pending,
  count(*) filter (where d.status = 'failed') as failed,
  count(*) filter (where d.status = 'cancelled') as cancelled,
  count(*) filter (where d.attempt > 1) as retried,
  sum(d.attempt)::bigint as attempts,
  case when count(*) filter (where d.status in ('delivered', 'failed')) = 0 then null
    else div(
      count(*) filter (where d.status = 'delivered') * 20000 + count(*) filter (where d.status in ('delivered', 'failed')),
      (count(*) filter (where d.status in ('delivered', 'failed')) * 2)::numeric
    ) end::bigint as delivered_bps,
  max(d.updated_at) filter (where d.status = 'delivered') as last_delivered_at
from webhooks.delivery d
where d.organization_id = (select data.organization_id())
  and d.program_id <> d.organization_id
group by 1, 2;
comment on view data.webhook_health is 'How each endpoint answers, by day (UTC) of the events'' deliveries. How long each request took stands in webhook_attempt.';
comment on column data.webhook_health.endpoint_id is 'The endpoint (whe_).';
comment on column data.webhook_health.day is 'The day (UTC) on which the deliveries were written.';
comment on column data.webhook_health.deliveries is 'How many deliveries.';
comment on column data.webhook_health.delivered is 'Of them: answered 2xx.';
comment on column data.webhook_health.pending is 'Of them: not sent yet, or to be tried again.';
comment on column data.webhook_health.failed is 'Of them: failed for good.';
comment on column data.webhook_health.cancelled is 'Of them: not sent, because the endpoint was disabled or deleted.';
comment on column data.webhook_health.retried is 'Of them: sent more than once.';
comment on column data.webhook_health.attempts is 'Requests that were made.';
comment on column data.webhook_health.delivered_bps is 'The share of settled deliveries that was delivered, in basis points. Null: none is settled.';
comment on column data.webhook_health.last_delivered_at is 'When a delivery of the day last succeeded. Null: none did.';
