-- Defines the strict sequence: takes the smallest positions that nobody has fanned out, and gives each receiving endpoint's
-- deliveries the endpoint's next places. Serial by a transaction's advisory lock; each statement under the lock sees all that
-- was committed before it. A commit that comes late takes a later place, and can neither be lost nor overtake what it depends on.
-- Gives the number of events taken: the caller repeats until it is 0.
create or replace function webhooks.fan_out(max_events integer) returns integer
language plpgsql volatile
as $$
declare
  events_taken integer;
  woken text[];
begin
  perform pg_advisory_xact_lock(2, 0);

  with taken as (
    delete from webhooks.pending_event
    where position in (select p.position from webhooks.pending_event p order by p.position limit max_events)
    returning position, organization_id, event_id, program_id, partner_id, type, for_partner
  ),
  matched as (
    select
      e.organization_id, e.program_id, e.id as endpoint_id, t.event_id, t.type,
      row_number() over (partition by e.id order by t.position) as nth,
      count(*) over (partition by e.id) as total
    from taken t
    join webhooks.endpoint e
      on e.program_id = t.program_id
      and e.organization_id = t.organization_id
      and e.status = 'enabled'
      and e.deleted_at is null
      and (e.event_types = '{}' or t.type = any (e.event_types))
      and (e.partner_id is null or (e.partner_id = t.partner_id and t.for_partner))
  ),
  lengthened as (
    update webhooks.lane l
    set last_place = l.last_place + m.total
    from (select distinct endpoint_id, total from matched) as m
    where l.endpoint_id = m.endpoint_id
    returning l.endpoint_id, l.last_place - m.total as base, l.lease_until
  ),
  queued as (
    insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, place)
    select m.organization_id, core.new_id('whd'), m.program_id, m.endpoint_id, m.event_id, m.type, l.base + m.nth
    from matched m
    join lengthened l using (endpoint_id)
  )
  select (select count(*) from taken), (select array_agg(l.endpoint_id) from lengthened l where webhooks.is_idle(l.lease_until))
  into events_taken, woken;

  perform webhooks.wake_lanes(woken);
  return events_taken;
end
$$;

-- Whether nobody sends to a lane. One that is being sent to needs no job: the turn's end, which waits for the row lock of whoever
-- lengthened the lane, sees the new places and enqueues the next turn itself.
create or replace function webhooks.is_idle(lease_until timestamptz) returns boolean
language sql volatile
return lease_until is null or lease_until < clock_timestamp();

-- Enqueues the job that delivers to each of these endpoints. Callers with more than one hold the fan-out's advisory lock, so that no
-- two of them deadlock on the keys.
create or replace function webhooks.wake_lanes(endpoint_ids text[]) returns void
language sql volatile
as $$
  select from graphile_worker.add_jobs(
    array(
      select row (
        'webhooks/deliver', json_build_object('endpoint_id', endpoint_id), null, null, null, 'deliver:' || endpoint_id, null, null
      )::graphile_worker.job_spec
      from unnest(endpoint_ids) as endpoint_id
      order by endpoint_id
    )
  )
  where cardinality(endpoint_ids) > 0
$$;
