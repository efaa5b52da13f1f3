-- Delivers in the strict sequence: takes the smallest positions that nobody has fanned out, and appends a delivery of each event to the queue
-- of each endpoint that receives it. Serial by a transaction's advisory lock, which everybody holds who gives queue positions; each statement
-- under the lock sees all that was committed before it. An event waits until every event of its organization with a lower position has
-- committed or is rolled back (complete_position.sql), so that endpoints receive events in the order in which the event log lists them.
--
-- The first row has the number of events it took (the caller repeats until they are less than `max_events`), and the endpoints that it appended to,
-- the slow ones apart. The other rows are runs at some of these, begun for `worker` (run.sql): at `most_endpoints`, where nobody sends. The caller
-- sees to it that the others get theirs.
create or replace function webhooks.fan_out(
  max_events integer,
  worker text default null,
  lease interval default null,
  most_endpoints integer default 0,
  most_deliveries integer default 0
)
returns table (
  taken integer,
  endpoint_ids text[],
  slow_endpoint_ids text[],
  endpoint_id text,
  token bigint,
  organization_id text,
  endpoint_version timestamptz,
  type text,
  url text,
  https_only boolean,
  secret bytea,
  previous_secret bytea,
  queue_position bigint,
  delivery_id text,
  event_id text,
  event_type text,
  attempt integer,
  body text,
  request_id text,
  traceparent text,
  cancelled boolean
)
language plpgsql volatile
-- A few events meet many endpoints: never read those all.
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  last_drawn bigint;
  own_id xid8;
  writers jsonb := '[]';
  idle_ids text[];
begin
  perform pg_advisory_xact_lock(2, 0);
  if not exists (select from webhooks.pending_event) then
    return;
  end if;

  last_drawn := webhooks.last_position();
  -- Mostly no other transaction is open that has an id, as writers have before they draw positions: all locks of the server are dear to look at.
  own_id := pg_current_xact_id();
  if pg_snapshot_xmin(pg_current_snapshot()) < own_id then
    select coalesce(jsonb_agg(w), '[]') from webhooks.open_writers() w into writers;
  end if;

  with open_writer as (
    select w.organization_bits, w.last_position
    from jsonb_to_recordset(writers) as w (organization_bits bigint, last_position bigint)
  ),
  taken_event as (
    delete from webhooks.pending_event
    where position in (
      select p.position
      from webhooks.pending_event p
      where p.position <= last_drawn
        and not exists (
          select from open_writer w
          where w.organization_bits = hashtext(p.organization_id) & 32767 and w.last_position < p.position
        )
      order by p.position
      limit max_events
    )
    returning position, organization_id, event_id, program_id, partner_id, type, for_partner, livemode, delivery_prefix
  ),
  matched as (
    select e.organization_id, e.program_id, e.id as endpoint_id, t.event_id, t.type, t.delivery_prefix
    from taken_event t
    join webhooks.endpoint e
      on e.program_id = t.program_id
      and e.organization_id = t.organization_id
      -- As the index has it: however many other partners have postbacks, they are not read.
      and coalesce(e.partner_id, '') = any (array['', case when t.for_partner then t.partner_id end])
      and e.status = 'enabled'
      and e.deleted_at is null
      and e.livemode = t.livemode
      and e.listens_from < t.position
      and (e.listens_until is null or t.position < e.listens_until)
      and (e.event_types = '{}' or t.type = any (e.event_types))
    order by t.position
  ),
  numbered as materialized (
    select
      m.organization_id, m.program_id, m.endpoint_id, m.event_id, m.type,
      core.new_id(m.delivery_prefix) as id, nextval('webhooks.queue_position') as queue_position
    from matched m
  ),
  logged as (
    insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, queue_position)
    select n.organization_id, n.id, n.program_id, n.endpoint_id, n.event_id, n.type, n.queue_position
    from numbered n
  ),
  queued as (
    insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type)
    select n.endpoint_id, n.queue_position, n.organization_id, n.id, n.event_id, n.type
    from numbered n
  )
  select
    (select count(*) from taken_event),
    array_agg(q.endpoint_id) filter (where not q.slow),
    array_agg(q.endpoint_id) filter (where q.slow),
    array_agg(q.endpoint_id) filter (where not q.slow and webhooks.is_idle(q.lease_until))
  from webhooks.endpoint_queue q
  where q.endpoint_id in (select n.endpoint_id from numbered n)
  into taken, endpoint_ids, slow_endpoint_ids, idle_ids;
  return next;

  if most_endpoints > 0 and idle_ids is not null then
    return query
      select null::integer, null::text[], null::text[], r.*
      from webhooks.begin_runs(idle_ids[1:most_endpoints], worker, lease, most_deliveries) as r;
  end if;
end
$$;
