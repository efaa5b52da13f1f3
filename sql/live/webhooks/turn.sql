-- Turns: the right to send to an endpoint, and what is to be sent. A lane comes back when nobody else sends to it and something waits; its
-- deliveries come in place order. One whose endpoint is switched off or whose event's week was dropped is `cancelled`. A lane can come back
-- with a null place: what waited for it was settled a moment before. Lanes that others hold locked are ending a turn: those look again.
-- The event is asked for as a range of one, in order, so that its primary key is chosen even while a week's partition is empty: there all
-- indexes seem equal, the plan is kept, and another index would read all of the organization's events for each delivery.
drop function if exists webhooks.begin_turns(text[], text, interval, integer);
create function webhooks.begin_turns(endpoint_ids text[], worker text, lease interval, most integer)
returns table (
  endpoint_id text,
  token bigint,
  organization_id text,
  endpoint_updated_at timestamptz,
  url text,
  https_only boolean,
  secret bytea,
  previous_secret bytea,
  place bigint,
  delivery_id text,
  event_id text,
  event_type text,
  attempt integer,
  body text,
  request_id text,
  cancelled boolean
)
language plpgsql volatile
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
    with leased as (
      update webhooks.lane l
      set lease_token = l.lease_token + 1, lease_until = clock_timestamp() + lease, leased_by = worker
      where l.endpoint_id in (
        select free.endpoint_id
        from webhooks.lane free
        where free.endpoint_id = any (endpoint_ids)
          and webhooks.is_idle(free.lease_until)
          and exists (select from webhooks.standing s where s.endpoint_id = free.endpoint_id and s.place > free.done_place)
        for update skip locked
      )
      returning l.endpoint_id, l.organization_id, l.lease_token, l.done_place
    )
    select
      l.endpoint_id, l.lease_token, l.organization_id, e.updated_at, e.url, e.https_only, e.secret,
      case when e.previous_secret_expires_at > now() then e.previous_secret end,
      s.place, s.delivery_id, s.event_id, s.event_type, s.attempt, s.body, s.request_id, s.cancelled
    from leased l
    join webhooks.endpoint e on e.organization_id = l.organization_id and e.id = l.endpoint_id
    left join lateral webhooks.next_places(l.endpoint_id, l.done_place, most) as s on true
    order by l.endpoint_id, s.place;
end
$$;

-- What stands in an endpoint's sequence behind a place. The plan may be kept from when little stood there: it must read in order and stop,
-- however much stands there later.
create or replace function webhooks.next_places(endpoint text, after_place bigint, most integer)
returns table (
  place bigint,
  delivery_id text,
  event_id text,
  event_type text,
  attempt integer,
  body text,
  request_id text,
  cancelled boolean
)
language plpgsql stable
set enable_hashjoin = off
set enable_mergejoin = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    with next as materialized (
      select s.organization_id, s.endpoint_id, s.place, s.delivery_id, s.event_id, s.event_type, s.attempt, s.request_body
      from webhooks.standing s
      where s.endpoint_id = endpoint
        and s.place > after_place
      order by s.place
      limit most
    )
    select
      n.place, n.delivery_id, n.event_id, n.event_type, n.attempt, coalesce(n.request_body, logged.body), logged.request_id,
      e.status = 'disabled' or e.deleted_at is not null or coalesce(n.request_body, logged.body) is null
    from next n
    join webhooks.endpoint e on e.organization_id = n.organization_id and e.id = n.endpoint_id
    left join lateral (
      select case when e.partner_id is null then v.body else v.postback_body end as body, v.request_id
      from webhooks.event v
      where v.organization_id = n.organization_id
        and v.id >= n.event_id
        and v.id <= n.event_id
      order by v.id
      limit 1
    ) as logged on true
    order by n.place;
end
$$;

-- Writes what came of attempts, and how their turns go on, for many lanes in one transaction. `lanes` is an array of
-- {endpoint_id, token, endpoint_updated_at, done_place, ended, slow}, `outcomes` one of {endpoint_id, organization_id, delivery_id, place,
-- attempt, at, duration_ms, status_code, response_body, error, status, next_attempt_at}. A turn that goes on has its lease renewed. Gives
-- the lanes whose turns may go on. Those whose lease is not theirs any more may not: what they report is dropped, and their successors send
-- it again. Nor may those whose endpoint has changed: they know an old address or secret, or that it is on.
create or replace function webhooks.end_turns(lanes json, outcomes json, lease interval)
returns table (endpoint_id text, token bigint)
language plpgsql volatile
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
  select min((o ->> 'delivery_id') collate "C"), max((o ->> 'delivery_id') collate "C") into first_id, last_id
  from json_array_elements(outcomes) as o;

  return query
    with reported as materialized (
      select r.*
      from json_to_recordset(lanes) as r (
        endpoint_id text, token bigint, endpoint_updated_at timestamptz, done_place bigint, ended boolean, slow boolean
      )
    ),
    held as materialized (
      select l.endpoint_id, r.done_place, r.ended, r.slow, e.updated_at <> r.endpoint_updated_at as endpoint_changed
      from reported r
      join webhooks.lane l on l.endpoint_id = r.endpoint_id and l.lease_token = r.token
      join webhooks.endpoint e on e.organization_id = l.organization_id and e.id = l.endpoint_id
      order by l.endpoint_id
      for update of l
    ),
    outcome as materialized (
      select o.*
      from json_to_recordset(outcomes) as o (
        endpoint_id text, organization_id text, delivery_id text, place bigint, attempt integer, at timestamptz, duration_ms integer,
        status_code integer, response_body text, error text, status text, next_attempt_at timestamptz
      )
      where o.endpoint_id in (select h.endpoint_id from held h)
    ),
    logged as (
      insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code, response_body, error)
      select o.organization_id, o.delivery_id, o.attempt, o.at, o.duration_ms, o.status_code, o.response_body, o.error
      from outcome o
      where o.attempt is not null
    ),
    settled as (
      update webhooks.delivery d
      set status = o.status, attempt = coalesce(o.attempt, d.attempt), next_attempt_at = o.next_attempt_at, updated_at = now()
      from outcome o
      where d.id between first_id and last_id
        and d.organization_id = o.organization_id
        and d.id = o.delivery_id
    ),
    passed as (
      delete from webhooks.standing s
      using outcome o
      where s.endpoint_id = o.endpoint_id
        and s.place = o.place
    ),
    renewed as (
      update webhooks.lane l
      set
        done_place = greatest(l.done_place, h.done_place),
        lease_until = case when not h.ended then clock_timestamp() + lease end,
        leased_by = case when not h.ended then l.leased_by end,
        slow = coalesce(h.slow, l.slow)
      from held h
      where l.endpoint_id = h.endpoint_id
      returning l.endpoint_id, l.lease_token, h.endpoint_changed
    )
    select r.endpoint_id, r.lease_token
    from renewed r
    where not r.endpoint_changed;

  -- Hardly any turn fails anything for good: the others do not read their outcomes once more.
  if outcomes::text like '%"failed"%' then
    perform webhooks.judge_later(outcomes);
  end if;
end
$$;
