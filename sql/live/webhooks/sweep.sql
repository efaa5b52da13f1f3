-- Runs every second in one of the workers: endpoints whose queues hold something, with no live lease and no job, get their job again (a keyed
-- add_job can schedule nothing under contention, and whoever was to wake them may have died). Gives true when events wait for a fan-out.
create or replace function webhooks.sweep() returns boolean
language plpgsql volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  forgotten text[];
begin
  if not pg_try_advisory_xact_lock(2, 1) then
    return false;
  end if;
  -- A loose scan: one probe an endpoint, however many deliveries wait for it.
  with recursive waiting as (
    (select d.endpoint_id from webhooks.queued_delivery d order by d.endpoint_id limit 1)
    union all
    select (select d.endpoint_id from webhooks.queued_delivery d where d.endpoint_id > w.endpoint_id order by d.endpoint_id limit 1)
    from waiting w
    where w.endpoint_id is not null
  )
  select array(
    select q.endpoint_id
    from waiting w
    join webhooks.endpoint_queue q on q.endpoint_id = w.endpoint_id
    where webhooks.is_idle(q.lease_until)
      and not exists (
        select from graphile_worker.jobs j
        where j.key = webhooks.run_key(q) and j.locked_at is null and j.attempts < j.max_attempts and j.run_at <= now()
        offset 0 -- asked for each endpoint by the key's index, and not joined
      )
    limit 1000
  )
  into forgotten;
  -- To plan the waking of none takes longer than all of the rest.
  if cardinality(forgotten) > 0 then
    perform webhooks.wake_endpoints(forgotten);
  end if;
  return exists (select from webhooks.pending_event);
end
$$;

-- The delivery sweep: retries that are due go to the ends of their endpoints' queues, in the order of their queue positions before.
-- Those from before their endpoint was last enabled are cancelled. `enqueued` is the number of both; the caller wakes the endpoints. Of the product whose deliveries have this prefix, so that only its
-- partitions are read; null: of all.
create or replace function webhooks.enqueue_due_retries(
  at timestamptz,
  most integer,
  delivery_prefix text default null,
  out enqueued integer,
  out endpoint_ids text[]
)
language plpgsql volatile
as $$
declare
  -- The range of ids with the prefix: ` follows _.
  first_id constant text := coalesce(delivery_prefix || '_', '');
  last_id constant text := coalesce(delivery_prefix || '`', '~');
begin
  -- In their order, so that it is the index of retries that is read: by the primary key each delivery of the weeks would be.
  if (
    select w.id
    from webhooks.delivery w
    where w.next_attempt_at <= at
      and w.id >= first_id collate "C"
      and w.id < last_id collate "C"
    order by w.next_attempt_at
    limit 1
  ) is null then
    enqueued := 0;
    return;
  end if;
  perform pg_advisory_xact_lock(2, 0);

  with due as (
    select d.organization_id, d.id, webhooks.is_cancelled(e, d.queue_position) as cancelled
    from (
      select w.organization_id, w.id, w.endpoint_id, w.queue_position
      from webhooks.delivery w
      where w.next_attempt_at <= at
        and w.id >= first_id collate "C"
        and w.id < last_id collate "C"
      order by w.next_attempt_at
      limit most
    ) as d
    join webhooks.endpoint e on e.organization_id = d.organization_id and e.id = d.endpoint_id
    order by d.queue_position
  ),
  numbered as materialized (
    select due.organization_id, due.id, due.cancelled, nextval('webhooks.queue_position') as queue_position
    from due
  ),
  moved as (
    update webhooks.delivery d
    set
      queue_position = n.queue_position, next_attempt_at = null, updated_at = now(),
      status = case when n.cancelled then 'cancelled' else d.status end
    from numbered n
    where d.next_attempt_at <= at
      and d.organization_id = n.organization_id
      and d.id = n.id
    returning d.organization_id, d.endpoint_id, d.queue_position, d.id, d.event_id, d.event_type, d.attempt, d.request_body, n.cancelled
  ),
  queued as (
    insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type, attempt, request_body)
    select m.endpoint_id, m.queue_position, m.organization_id, m.id, m.event_id, m.event_type, m.attempt, m.request_body
    from moved m
    where not m.cancelled
  )
  select (select count(*) from moved), (select array_agg(distinct m.endpoint_id) from moved m where not m.cancelled)
  into enqueued, endpoint_ids;
end
$$;

-- Frees the leases of workers that are dead (see core.reap_dead_workers), and gives the endpoints, for the caller to wake.
create or replace function webhooks.free_leases(worker_ids text[]) returns text[]
language plpgsql volatile
as $$
declare
  freed text[];
begin
  with freed_queue as (
    update webhooks.endpoint_queue q
    set lease_until = null, leased_by = null
    where q.leased_by = any (worker_ids)
    returning q.endpoint_id
  )
  select array_agg(f.endpoint_id) from freed_queue f into freed;
  return freed;
end
$$;
