-- Runs every second in one of the workers: wakes what a lost wake-up left lying. Events that nobody fanned out are the fan-out
-- job's; lanes with waiting places and no live lease get their job again (a keyed add_job can schedule nothing under contention).
-- Gives true when events wait for a fan-out.
create or replace function webhooks.sweep() returns boolean
language plpgsql volatile
as $$
declare
  forgotten text[];
begin
  if not pg_try_advisory_xact_lock(2, 1) then
    return false;
  end if;
  forgotten := array(
    select l.endpoint_id
    from webhooks.lane l
    where l.last_place > l.done_place
      and webhooks.is_idle(l.lease_until)
      and not exists (
        select from graphile_worker.jobs j
        where j.key = 'deliver:' || l.endpoint_id and j.locked_at is null and j.attempts < j.max_attempts and j.run_at <= now()
      )
    order by l.endpoint_id
    limit 1000
  );
  if cardinality(forgotten) > 0 then
    perform pg_advisory_xact_lock(2, 0);
    perform webhooks.wake_lanes(forgotten);
  end if;
  return exists (select from webhooks.pending_event);
end
$$;

-- The delivery sweep, at 1 and 31 minutes past: retries that are due get new places at the end of their endpoints' sequences,
-- in the order in which they stood before. Gives the number of them.
create or replace function webhooks.place_due_retries(at timestamptz, most integer) returns integer
language plpgsql volatile
as $$
declare
  placed integer;
  woken text[];
begin
  perform pg_advisory_xact_lock(2, 0);

  with due as (
    select d.organization_id, d.id, d.endpoint_id,
      row_number() over (partition by d.endpoint_id order by d.place) as nth,
      count(*) over (partition by d.endpoint_id) as total
    from (
      select w.organization_id, w.id, w.endpoint_id, w.place
      from webhooks.delivery w
      join webhooks.lane using (endpoint_id)
      where w.next_attempt_at <= at
      order by w.next_attempt_at
      limit most
    ) as d
  ),
  lengthened as (
    update webhooks.lane l
    set last_place = l.last_place + m.total
    from (select distinct endpoint_id, total from due) as m
    where l.endpoint_id = m.endpoint_id
    returning l.endpoint_id, l.last_place - m.total as base, l.lease_until
  ),
  moved as (
    update webhooks.delivery d
    set place = l.base + due.nth, next_attempt_at = null, updated_at = now()
    from due
    join lengthened l using (endpoint_id)
    where d.next_attempt_at <= at
      and d.organization_id = due.organization_id
      and d.id = due.id
    returning d.id
  )
  select (select count(*) from moved), (select array_agg(l.endpoint_id) from lengthened l where webhooks.is_idle(l.lease_until))
  into placed, woken;

  perform webhooks.wake_lanes(woken);
  return placed;
end
$$;

-- Frees the leases of workers that are dead (see core.bury_dead_workers) and wakes their lanes. Wake-ups that others took the place of
-- while their worker held them would lie in the queue for good, with no attempts left: they go.
create or replace function webhooks.free_leases(worker_ids text[]) returns void
language plpgsql volatile
as $$
declare
  woken text[];
begin
  perform pg_advisory_xact_lock(2, 0);

  with freed as (
    update webhooks.lane l
    set lease_until = null, leased_by = null
    where l.leased_by = any (worker_ids)
    returning l.endpoint_id, l.last_place > l.done_place as waiting
  )
  select array_agg(f.endpoint_id) from freed f where f.waiting into woken;

  perform webhooks.wake_lanes(woken);
  perform graphile_worker.complete_jobs(
    array(
      select j.id
      from graphile_worker.jobs j
      where j.task_identifier = 'webhooks/deliver' and j.locked_at is null and j.attempts >= j.max_attempts
    )
  );
end
$$;
