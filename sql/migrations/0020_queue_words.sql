-- The queues of endpoints in the field's words: an endpoint has a queue of deliveries, each with a position in it; whoever holds the lease makes
-- a run. The names of before remain as views for the version before, whose processes run on during a deploy (for its functions see
-- sql/live/webhooks/previous_version.sql).

-- Whoever writes to several of these tables holds one of the two locks, or begins with the queue's row.
select pg_advisory_xact_lock(2, 0), pg_advisory_xact_lock(2, 1);
lock table webhooks.lane, webhooks.delivery, webhooks.standing in access exclusive mode;

alter table webhooks.lane rename to endpoint_queue;
alter table webhooks.endpoint_queue rename column done_place to done_position;
alter table webhooks.endpoint_queue rename constraint lane_pkey to endpoint_queue_pkey;
alter table webhooks.endpoint_queue
  rename constraint lane_organization_id_endpoint_id_fkey to endpoint_queue_organization_id_endpoint_id_fkey;
comment on table webhooks.endpoint_queue is
  'Who sends the deliveries of an endpoint''s queue: whoever holds the lease is the only one who does. Apart from the endpoint, because every run writes here.';
comment on column webhooks.endpoint_queue.done_position is 'Every delivery up to this queue position has its result, or waits to be tried again.';
comment on column webhooks.endpoint_queue.slow is 'The last attempt took long: its runs have slots of their own, and keep nobody else waiting.';

alter table webhooks.standing rename to queued_delivery;
alter table webhooks.queued_delivery rename column place to queue_position;
alter table webhooks.queued_delivery rename constraint standing_pkey to queued_delivery_pkey;
comment on table webhooks.queued_delivery is 'Deliveries that wait to be sent, in the queues of their endpoints. Rows go when the result is written.';

alter table webhooks.delivery rename column place to queue_position;
comment on column webhooks.delivery.queue_position is
  'Its position in the endpoint''s queue, or the last one it had. A retry or a replay is enqueued at the end.';
comment on column webhooks.delivery.next_attempt_at is 'When a failed attempt may be repeated; null while it is queued or has its final status.';

alter sequence webhooks.place rename to queue_position;
comment on sequence webhooks.queue_position is
  'Positions in the queues of all endpoints, taken under the fan-out''s advisory lock: they are committed in their order.';

create view webhooks.lane with (security_invoker = true) as
select q.endpoint_id, q.organization_id, q.done_position as done_place, q.lease_token, q.lease_until, q.leased_by, q.slow
from webhooks.endpoint_queue q;
comment on view webhooks.lane is 'webhooks.endpoint_queue for the version before.';

create view webhooks.standing with (security_invoker = true) as
select
  d.endpoint_id, d.queue_position as place, d.organization_id, d.delivery_id, d.event_id, d.event_type, d.attempt, d.request_body
from webhooks.queued_delivery d;
comment on view webhooks.standing is 'webhooks.queued_delivery for the version before.';

grant select, insert, update, delete on webhooks.lane, webhooks.standing to rail_api;

-- Written anew under another name, or with other names of parameters.
drop function if exists webhooks.turn_job(webhooks.endpoint_queue);
drop function if exists webhooks.turn_key(webhooks.endpoint_queue);
drop function if exists webhooks.judge_later(json);

-- What the sweep of deliveries missed under its name before is caught up under the new one.
insert into core.schedule (name, since)
select 'webhooks/enqueue_due_retries', greatest(s.since, (select max(r.tick) from core.scheduled_run r where r.name = s.name))
from core.schedule s
where s.name = 'webhooks/place_due_retries';
