-- Endpoint switch-off: "when the last 20 events sent to an endpoint all failed every retry within 30 days and the failures span at least
-- five days, the endpoint is turned off". What counts is the whole run of failures that ends with the last 20 events: at a busy
-- endpoint that is dead the last 20 fail within a minute, and it must be found all the same.
--
-- An event has failed when a delivery of it has failed for good, at the time when it did; several failures of one event (replays)
-- count as one event. A delivery that arrived breaks the run, a replay's too. What waits, what was cancelled and test events are neither.
-- Deliveries are in the order of their ids, in which they were first sent.

create or replace function webhooks.is_test_event(event_id text) returns boolean
language sql immutable parallel safe
return event_id like 'evt\_test\_%';

-- Enqueues a check of the endpoints to which an event failed for good, once the transaction has committed. `results` are those of runs, as
-- {organization_id, delivery_id, status}. One waiting job an endpoint is enough; should it be lost (a keyed job can be scheduled not at all
-- under contention), the next failure enqueues the next.
create or replace function webhooks.check_failing_later(results json) returns void
language sql volatile
as $$
  select from graphile_worker.add_jobs(
    array(
      select row (
        'webhooks/disable_failing_endpoint', json_build_object('endpoint_id', failing.endpoint_id), null, null, null,
        'disable:' || failing.endpoint_id, null, null
      )::graphile_worker.job_spec
      from (
        select distinct d.endpoint_id
        from json_to_recordset(results) as r (organization_id text, delivery_id text, status text)
        join webhooks.delivery d on d.organization_id = r.organization_id and d.id = r.delivery_id
        join webhooks.endpoint e on e.organization_id = d.organization_id and e.id = d.endpoint_id
        where r.status = 'failed'
          and d.status = 'failed'
          and (e.check_failures_from is null or e.check_failures_from <= now())
          and not webhooks.is_test_event(d.event_id)
      ) as failing
      order by failing.endpoint_id
    )
  )
$$;

-- Returns the endpoint and its failures if it is to be disabled, else nothing, and holds its row lock: of two
-- that check at once, the second sees what the first has done. Deliveries are read by the endpoint's index, from the newest back to the
-- one that arrived: the planner cannot know that few are newer. As long as a run does not span enough, it will not before its beginning is so
-- long ago: failures that follow are later, and what arrives or is enabled again only makes it shorter. So a run is read once, while it is short, and
-- once when it is long enough.
create or replace function webhooks.dead_endpoint(endpoint text, at timestamptz, fewest integer, period interval, span interval)
returns table (
  organization_id text,
  program_id text,
  partner_id text,
  url text,
  failed bigint,
  first_failed_at timestamptz,
  last_failed_at timestamptz,
  last_error text
)
language plpgsql volatile
set enable_seqscan = off
as $$
declare
  checked record;
  run record;
begin
  select e.organization_id, e.program_id, e.partner_id, e.url, greatest(e.failures_count_from, at - period) as since, e.check_failures_from
  into checked
  from webhooks.endpoint_queue q
  join webhooks.endpoint e on e.organization_id = q.organization_id and e.id = q.endpoint_id
  where q.endpoint_id = endpoint and e.status = 'enabled' and e.deleted_at is null
  for update of e;
  if not found or checked.check_failures_from > at then
    return;
  end if;

  with arrived as (
    select d.id
    from webhooks.delivery d
    where d.organization_id = checked.organization_id
      and d.endpoint_id = endpoint
      and d.status = 'delivered'
      and not webhooks.is_test_event(d.event_id)
    order by d.id desc
    limit 1
  )
  select
    count(distinct d.event_id) as events,
    min(d.updated_at) as began_at,
    max(d.updated_at) as ended_at,
    (array_agg(d.id order by d.updated_at desc, d.id desc))[1] as last_id
  into run
  from webhooks.delivery d
  where d.organization_id = checked.organization_id
    and d.endpoint_id = endpoint
    and d.id > coalesce((select a.id from arrived a), '')
    and d.status = 'failed'
    and d.updated_at >= checked.since
    and not webhooks.is_test_event(d.event_id);

  update webhooks.endpoint e
  set check_failures_from = run.began_at + span
  where e.organization_id = checked.organization_id
    and e.id = endpoint
    and e.check_failures_from is distinct from run.began_at + span;
  if run.events < fewest or run.ended_at - run.began_at < span then
    return;
  end if;

  return query
    select
      checked.organization_id, checked.program_id, checked.partner_id, checked.url, run.events, run.began_at, run.ended_at,
      (
        select a.error
        from webhooks.attempt a
        where a.organization_id = checked.organization_id and a.delivery_id = run.last_id
        order by a.attempt desc
        limit 1
      );
end
$$;
