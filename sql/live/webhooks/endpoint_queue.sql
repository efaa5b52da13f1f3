-- An endpoint's queue: appending to it, and waking those who send what it holds. What appends to it in bulk is in fan_out.sql and sweep.sql.

-- Returns whether nobody sends to an endpoint.
create or replace function webhooks.is_idle(lease_until timestamptz) returns boolean
language sql volatile
return lease_until is null or lease_until < clock_timestamp();

-- Returns whether a delivery is cancelled: its endpoint is off, or was off after the delivery took this place in its queue.
create or replace function webhooks.is_cancelled(endpoint webhooks.endpoint, queue_position bigint) returns boolean
language sql immutable
return endpoint.status = 'disabled' or endpoint.deleted_at is not null or coalesce(queue_position < endpoint.cancelled_until, false);

-- The key of the job for an endpoint's next run: one job a run, and not the key of the job whose run has just ended. That one may be about to
-- be deleted together with others; add_jobs would touch its row, and of the two one would lose a deadlock.
create or replace function webhooks.run_key(queue webhooks.endpoint_queue) returns text
language sql immutable
return 'deliver:' || queue.endpoint_id || ':' || queue.lease_token;

-- The job of an endpoint's next run, as core.enqueue takes it.
create or replace function webhooks.run_job(queue webhooks.endpoint_queue) returns json
language sql stable
return json_build_object(
  'identifier', case when queue.slow then 'webhooks/deliver_slow' else 'webhooks/deliver' end,
  'payload', json_build_object('endpoint_id', queue.endpoint_id),
  'job_key', webhooks.run_key(queue)
);

-- Enqueues the job that delivers to each of these endpoints, where something waits and nobody sends. Whoever appended to a queue calls it
-- after the commit; so does whoever ended a run. At least one of two that meet then sees what the other wrote, and no wake-up is lost.
create or replace function webhooks.wake_endpoints(endpoint_ids text[]) returns void
language sql volatile
as $$
  select core.enqueue(json_agg(webhooks.run_job(q) order by q.endpoint_id))
  from webhooks.endpoint_queue q
  where q.endpoint_id = any (endpoint_ids)
    and webhooks.is_idle(q.lease_until)
    and exists (select from webhooks.queued_delivery d where d.endpoint_id = q.endpoint_id and d.queue_position > q.done_position)
  having count(*) > 0
$$;

-- Appends deliveries to their endpoints' queues, in the order given, and enqueues the endpoints' jobs with the commit: also where somebody
-- sends, who cannot see yet what waits. The last statement of a transaction: the lock is everybody's.
create or replace function webhooks.enqueue_deliveries(organization text, delivery_ids text[]) returns void
language plpgsql volatile
as $$
begin
  perform core.enqueue(json_agg(webhooks.run_job(q) order by q.endpoint_id))
  from webhooks.endpoint_queue q
  where q.endpoint_id in (
    select d.endpoint_id from webhooks.delivery d where d.organization_id = organization and d.id = any (delivery_ids)
  );

  perform pg_advisory_xact_lock(2, 0);

  with numbered as materialized (
    select ordered.id, nextval('webhooks.queue_position') as queue_position
    from (select given.id from unnest(delivery_ids) with ordinality as given (id, nth) order by given.nth) as ordered
  ),
  logged as (
    update webhooks.delivery d
    set queue_position = n.queue_position
    from numbered n
    where d.organization_id = organization
      and d.id = n.id
    returning d.endpoint_id, d.queue_position, d.id, d.event_id, d.event_type, d.attempt, d.request_body
  )
  insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type, attempt, request_body)
  select l.endpoint_id, l.queue_position, organization, l.id, l.event_id, l.event_type, l.attempt, l.request_body
  from logged l;
end
$$;
