-- A turn: the right to send to one endpoint, and what is to be sent. Nothing is returned when another turn is on or nothing
-- waits. Deliveries come in place order. A cancelled delivery keeps its place and is passed over; so does one whose event's week was
-- dropped. The event is asked for as a range of one, in order, so that its primary key is chosen even while a week's partition is empty:
-- there all indexes seem equal, the plan is kept, and another index would read all of the organization's events for each delivery.
create or replace function webhooks.begin_turn(endpoint text, worker text, lease interval, most integer)
returns table (
  token bigint,
  organization_id text,
  place bigint,
  delivery_id text,
  event_id text,
  event_type text,
  attempt integer,
  body text,
  request_id text,
  status text
)
language plpgsql volatile
as $$
declare
  held record;
begin
  update webhooks.lane l
  set lease_token = l.lease_token + 1, lease_until = clock_timestamp() + lease, leased_by = worker
  where l.endpoint_id = endpoint
    and l.last_place > l.done_place
    and (l.lease_until is null or l.lease_until < clock_timestamp())
  returning l.organization_id, l.lease_token, l.done_place into held;
  if not found then
    return;
  end if;
  return query
    select
      held.lease_token, d.organization_id, d.place, d.id, d.event_id, d.event_type, d.attempt,
      coalesce(d.request_body, logged.body), logged.request_id,
      case when e.status = 'disabled' or e.deleted_at is not null or coalesce(d.request_body, logged.body) is null then 'cancelled' else d.status end
    from webhooks.endpoint e
    join webhooks.delivery d on d.organization_id = e.organization_id and d.endpoint_id = e.id
    left join lateral (
      select case when e.partner_id is null then v.body else v.postback_body end as body, v.request_id
      from webhooks.event v
      where v.organization_id = d.organization_id
        and v.id >= d.event_id
        and v.id <= d.event_id
      order by v.id
      limit 1
    ) as logged on true
    where e.organization_id = held.organization_id
      and e.id = endpoint
      and d.endpoint_id = endpoint
      and d.place > held.done_place
    order by d.place
    limit most;
  if not found then
    -- The log of these places was dropped with its week: nothing of them is left to send.
    update webhooks.lane l
    set done_place = l.last_place, lease_until = null, leased_by = null
    where l.endpoint_id = endpoint;
  end if;
end
$$;

-- Ends a turn: writes what came of it and lets go of the lease, in one transaction. `outcomes` is an array of
-- {organization_id, delivery_id, place, attempt, at, duration_ms, status_code, response_body, error, status, next_attempt_at}.
-- What an expired lease reports is dropped (false): its successor sends those again. Events that were fanned out during the turn
-- are seen here under the lane's row lock, so that no wake-up is lost.
create or replace function webhooks.end_turn(endpoint text, token bigint, outcomes json) returns boolean
language plpgsql volatile
as $$
declare
  first_place bigint;
  final_place bigint := (select max((o ->> 'place')::bigint) from json_array_elements(outcomes) as o);
  waiting boolean;
begin
  select l.done_place + 1 into first_place from webhooks.lane l where l.endpoint_id = endpoint and l.lease_token = token for update;
  if not found then
    return false;
  end if;

  with outcome as (
    select o.*
    from json_to_recordset(outcomes) as o (
      organization_id text, delivery_id text, place bigint, attempt integer, at timestamptz, duration_ms integer,
      status_code integer, response_body text, error text, status text, next_attempt_at timestamptz
    )
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
    where d.endpoint_id = endpoint
      and d.place between first_place and final_place
      and d.organization_id = o.organization_id
      and d.id = o.delivery_id
  )
  update webhooks.lane l
  set done_place = greatest(l.done_place, final_place), lease_until = null, leased_by = null
  where l.endpoint_id = endpoint
  returning l.last_place > l.done_place into waiting;

  if waiting then
    perform webhooks.wake_lanes(array[endpoint]);
  end if;
  return true;
end
$$;
