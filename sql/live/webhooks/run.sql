-- The version of what a run knows of its endpoint: it changes with the endpoint, and when the secret before the last rotation runs out, so that a
-- run which goes on for long does not sign by it any more.
create or replace function webhooks.endpoint_version(updated_at timestamptz, previous_secret_expires_at timestamptz)
returns timestamptz
language sql stable
return greatest(updated_at, case when previous_secret_expires_at <= now() then previous_secret_expires_at end);

-- Runs: the right to send to an endpoint, and what is to be sent. A lease comes back when nobody else sends to the endpoint and its queue
-- holds something; its deliveries come in the order of the queue. One whose endpoint is switched off or whose event's week was dropped is
-- `cancelled`. A lease can come back with a null position: what waited was recorded a moment before. Queues that others hold locked are
-- ending a run: those look again. Mostly nothing waits for whoever looks again: that is asked first.
create or replace function webhooks.begin_runs(endpoint_ids text[], worker text, lease interval, most integer)
returns table (
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
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  if not exists (
    select from webhooks.endpoint_queue q
    where q.endpoint_id = any (endpoint_ids)
      and exists (select from webhooks.queued_delivery d where d.endpoint_id = q.endpoint_id and d.queue_position > q.done_position)
  ) then
    return;
  end if;

  return query
    with leased as (
      update webhooks.endpoint_queue q
      set lease_token = q.lease_token + 1, lease_until = clock_timestamp() + lease, leased_by = worker
      where q.endpoint_id in (
        select free.endpoint_id
        from webhooks.endpoint_queue free
        where free.endpoint_id = any (endpoint_ids)
          and webhooks.is_idle(free.lease_until)
          and exists (select from webhooks.queued_delivery d where d.endpoint_id = free.endpoint_id and d.queue_position > free.done_position)
        for update skip locked
      )
      returning q.endpoint_id, q.organization_id, q.lease_token, q.done_position
    )
    select
      l.endpoint_id, l.lease_token, l.organization_id, webhooks.endpoint_version(e.updated_at, e.previous_secret_expires_at), e.type, e.url, e.https_only, e.secret,
      case when e.previous_secret_expires_at > now() then e.previous_secret end,
      d.queue_position, d.delivery_id, d.event_id, d.event_type, d.attempt, d.body, d.request_id, d.traceparent, d.cancelled
    from leased l
    join webhooks.endpoint e on e.organization_id = l.organization_id and e.id = l.endpoint_id
    left join lateral webhooks.next_deliveries(l.endpoint_id, l.done_position, most) as d on true
    order by l.endpoint_id, d.queue_position;
end
$$;

-- The deliveries in an endpoint's queue after a position. The plan may be kept from when the queue was short: it must read in order and stop, however
-- long the queue is later. The ids of its events are named apart, so that only the partitions of their weeks are opened. An event is asked for as a
-- range of one, in order, so that its primary key is chosen even while a week's partition is empty: there all indexes seem equal, and another index
-- would read all of the organization's events for each delivery.
create or replace function webhooks.next_deliveries(endpoint text, after_position bigint, most integer)
returns table (
  endpoint_version timestamptz,
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
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  last_position bigint;
  first_id text;
  last_id text;
begin
  select max(next.queue_position), min(next.event_id collate "C"), max(next.event_id collate "C")
  from (
    select d.queue_position, d.event_id
    from webhooks.queued_delivery d
    where d.endpoint_id = endpoint
      and d.queue_position > after_position
    order by d.queue_position
    limit most
  ) as next
  into last_position, first_id, last_id;
  if last_position is null then
    return;
  end if;

  return query
    select
      webhooks.endpoint_version(e.updated_at, e.previous_secret_expires_at), n.queue_position, n.delivery_id, n.event_id, n.event_type, n.attempt, coalesce(n.request_body, logged.body), logged.request_id, logged.traceparent,
      webhooks.is_cancelled(e, n.queue_position) or coalesce(n.request_body, logged.body) is null
    from webhooks.queued_delivery n
    join webhooks.endpoint e on e.organization_id = n.organization_id and e.id = n.endpoint_id
    left join lateral (
      select webhooks.body_for(e, v) as body, v.request_id, v.traceparent
      from webhooks.event v
      where v.id between first_id and last_id
        and v.organization_id = n.organization_id
        and v.id >= n.event_id
        and v.id <= n.event_id
      order by v.id
      limit 1
    ) as logged on true
    where n.endpoint_id = endpoint
      and n.queue_position > after_position
      and n.queue_position <= last_position
    order by n.queue_position;
end
$$;

-- Records the results of deliveries, and how their runs go on, for many endpoints in one transaction. `runs` is an array of
-- {endpoint_id, token, endpoint_version, done_position, ended, slow}, `results` one of {endpoint_id, organization_id, delivery_id,
-- queue_position, attempt, at, duration_ms, status_code, response_body, error, url, rail_signature, webhook_signature, status,
-- next_attempt_at}. A run that goes on has its lease
-- renewed. Gives those that may go on. Those whose lease is not theirs any more may not: what they report is dropped, and their successors
-- send it again. Nor may those whose endpoint has changed: they know an old address or secret, or that it is on.
create or replace function webhooks.record_runs(runs json, results json, lease interval)
returns table (endpoint_id text, token bigint)
language plpgsql volatile
set plan_cache_mode = force_generic_plan
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  -- Named apart, so that only the partitions of these weeks are opened.
  first_id text;
  last_id text;
begin
  select min((r ->> 'delivery_id') collate "C"), max((r ->> 'delivery_id') collate "C") into first_id, last_id
  from json_array_elements(results) as r;

  return query
    with reported as materialized (
      select r.*
      from json_to_recordset(runs) as r (
        endpoint_id text, token bigint, endpoint_version timestamptz, done_position bigint, ended boolean, slow boolean
      )
    ),
    held as materialized (
      select q.endpoint_id, r.done_position, r.ended, r.slow,
        webhooks.endpoint_version(e.updated_at, e.previous_secret_expires_at) <> r.endpoint_version as endpoint_changed
      from reported r
      join webhooks.endpoint_queue q on q.endpoint_id = r.endpoint_id and q.lease_token = r.token
      join webhooks.endpoint e on e.organization_id = q.organization_id and e.id = q.endpoint_id
      order by q.endpoint_id
      for update of q
    ),
    result as materialized (
      select r.*
      from json_to_recordset(results) as r (
        endpoint_id text, organization_id text, delivery_id text, queue_position bigint, attempt integer, at timestamptz, duration_ms integer,
        status_code integer, response_body text, error text, url text, rail_signature text, webhook_signature text, status text,
        next_attempt_at timestamptz
      )
      where r.endpoint_id in (select h.endpoint_id from held h)
    ),
    logged as (
      insert into webhooks.attempt (
        organization_id, delivery_id, attempt, at, duration_ms, status_code, response_body, error, url, rail_signature, webhook_signature
      )
      select
        r.organization_id, r.delivery_id, r.attempt, r.at, r.duration_ms, r.status_code, r.response_body, r.error, r.url, r.rail_signature,
        r.webhook_signature
      from result r
      where r.attempt is not null
    ),
    written as (
      update webhooks.delivery d
      set status = r.status, attempt = coalesce(r.attempt, d.attempt), next_attempt_at = r.next_attempt_at, updated_at = now()
      from result r
      where d.id between first_id and last_id
        and d.organization_id = r.organization_id
        and d.id = r.delivery_id
    ),
    dequeued as (
      delete from webhooks.queued_delivery d
      using result r
      where d.endpoint_id = r.endpoint_id
        and d.queue_position = r.queue_position
    ),
    renewed as (
      update webhooks.endpoint_queue q
      set
        done_position = greatest(q.done_position, h.done_position),
        lease_until = case when not h.ended then clock_timestamp() + lease end,
        leased_by = case when not h.ended then q.leased_by end,
        slow = coalesce(h.slow, q.slow)
      from held h
      where q.endpoint_id = h.endpoint_id
      returning q.endpoint_id, q.lease_token, h.endpoint_changed
    )
    select r.endpoint_id, r.lease_token
    from renewed r
    where not r.endpoint_changed;

  -- Hardly any delivery fails for good: the others are not read once more.
  if results::text like '%"failed"%' then
    perform webhooks.check_failing_later(results);
  end if;
end
$$;
