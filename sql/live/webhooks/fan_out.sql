-- Defines the strict sequence: takes the smallest positions that nobody has fanned out, and gives each receiving endpoint's
-- deliveries the next places. Serial by a transaction's advisory lock, which everybody holds who gives places; each statement under the
-- lock sees all that was committed before it. A commit that comes late takes a later place, and can neither be lost nor overtake what it
-- depends on. `taken` is the number of events: the caller repeats until it is less than `max_events`. It then sees to it that the lanes get
-- their turns, the slow ones apart.
create or replace function webhooks.fan_out(max_events integer, out taken integer, out endpoint_ids text[], out slow_endpoint_ids text[])
language plpgsql volatile
-- A few events meet many endpoints: never read those all.
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $$
begin
  perform pg_advisory_xact_lock(2, 0);
  if not exists (select from webhooks.pending_event) then
    taken := 0;
    return;
  end if;

  with taken_event as (
    delete from webhooks.pending_event
    where position in (select p.position from webhooks.pending_event p order by p.position limit max_events)
    returning position, organization_id, event_id, program_id, partner_id, type, for_partner, livemode, delivery_prefix
  ),
  matched as (
    select e.organization_id, e.program_id, e.id as endpoint_id, t.event_id, t.type, t.delivery_prefix
    from taken_event t
    join webhooks.endpoint e
      on e.program_id = t.program_id
      and e.organization_id = t.organization_id
      and e.status = 'enabled'
      and e.deleted_at is null
      and e.livemode = t.livemode
      and e.listens_from < t.position
      and (e.event_types = '{}' or t.type = any (e.event_types))
      and (e.partner_id is null or (e.partner_id = t.partner_id and t.for_partner))
    order by t.position
  ),
  placed as materialized (
    select m.organization_id, m.program_id, m.endpoint_id, m.event_id, m.type, core.new_id(m.delivery_prefix) as id, nextval('webhooks.place') as place
    from matched m
  ),
  logged as (
    insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, place)
    select p.organization_id, p.id, p.program_id, p.endpoint_id, p.event_id, p.type, p.place
    from placed p
  ),
  queued as (
    insert into webhooks.standing (endpoint_id, place, organization_id, delivery_id, event_id, event_type)
    select p.endpoint_id, p.place, p.organization_id, p.id, p.event_id, p.type
    from placed p
  )
  select
    (select count(*) from taken_event),
    (select array_agg(l.endpoint_id) from webhooks.lane l where not l.slow and l.endpoint_id in (select p.endpoint_id from placed p)),
    (select array_agg(l.endpoint_id) from webhooks.lane l where l.slow and l.endpoint_id in (select p.endpoint_id from placed p))
  into taken, endpoint_ids, slow_endpoint_ids;
end
$$;

-- Whether nobody sends to a lane.
create or replace function webhooks.is_idle(lease_until timestamptz) returns boolean
language sql volatile
return lease_until is null or lease_until < clock_timestamp();

-- The key of the job for a lane's next turn: one job a turn, and not the key of the job whose turn has just ended. That one may be about to
-- be deleted together with others; add_jobs would touch its row, and of the two one would lose a deadlock.
create or replace function webhooks.turn_key(lane webhooks.lane) returns text
language sql immutable
return 'deliver:' || lane.endpoint_id || ':' || lane.lease_token;

-- The job of a lane's next turn, as core.enqueue takes it.
create or replace function webhooks.turn_job(lane webhooks.lane) returns json
language sql stable
return json_build_object(
  'identifier', case when lane.slow then 'webhooks/deliver_slow' else 'webhooks/deliver' end,
  'payload', json_build_object('endpoint_id', lane.endpoint_id),
  'job_key', webhooks.turn_key(lane)
);

-- Enqueues the job that delivers to each of these endpoints, where something waits and nobody sends. Whoever gave a place calls it after
-- the commit; so does whoever ended a turn. At least one of two that meet then sees what the other wrote, and no wake-up is lost.
create or replace function webhooks.wake_lanes(endpoint_ids text[]) returns void
language sql volatile
as $$
  select core.enqueue(json_agg(webhooks.turn_job(l) order by l.endpoint_id))
  from webhooks.lane l
  where l.endpoint_id = any (endpoint_ids)
    and webhooks.is_idle(l.lease_until)
    and exists (select from webhooks.standing s where s.endpoint_id = l.endpoint_id and s.place > l.done_place)
$$;

-- Gives deliveries places at the ends of their endpoints' sequences, in the order given, and enqueues the endpoints' jobs with the commit:
-- also where somebody sends, who cannot see yet what waits. The last statement of a transaction: the lock is everybody's.
create or replace function webhooks.stand(organization text, delivery_ids text[]) returns void
language plpgsql volatile
as $$
begin
  perform core.enqueue(json_agg(webhooks.turn_job(l) order by l.endpoint_id))
  from webhooks.lane l
  where l.endpoint_id in (
    select d.endpoint_id from webhooks.delivery d where d.organization_id = organization and d.id = any (delivery_ids)
  );

  perform pg_advisory_xact_lock(2, 0);

  with placed as materialized (
    select ordered.id, nextval('webhooks.place') as place
    from (select given.id from unnest(delivery_ids) with ordinality as given (id, nth) order by given.nth) as ordered
  ),
  logged as (
    update webhooks.delivery d
    set place = p.place
    from placed p
    where d.organization_id = organization
      and d.id = p.id
    returning d.endpoint_id, d.place, d.id, d.event_id, d.event_type, d.attempt, d.request_body
  )
  insert into webhooks.standing (endpoint_id, place, organization_id, delivery_id, event_id, event_type, attempt, request_body)
  select l.endpoint_id, l.place, organization, l.id, l.event_id, l.event_type, l.attempt, l.request_body
  from logged l;
end
$$;
