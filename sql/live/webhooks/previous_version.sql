-- What the version before calls, in its words, while its processes run beside those of this one during a deploy. With the views
-- webhooks.lane and webhooks.standing (migration 0020) it is to be dropped by a migration of the next version, and this file deleted.

create or replace function webhooks.begin_turns(endpoint_ids text[], worker text, lease interval, most integer)
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
as $$
begin
  return query
    select
      r.endpoint_id, r.token, r.organization_id, r.endpoint_updated_at, r.url, r.https_only, r.secret, r.previous_secret, r.queue_position,
      r.delivery_id, r.event_id, r.event_type, r.attempt, r.body, r.request_id, r.cancelled
    from webhooks.begin_runs(endpoint_ids, worker, lease, most) as r;
end
$$;

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
as $$
begin
  return query
    select d.queue_position, d.delivery_id, d.event_id, d.event_type, d.attempt, d.body, d.request_id, d.cancelled
    from webhooks.next_deliveries(endpoint, after_place, most) as d;
end
$$;

create or replace function webhooks.end_turns(lanes json, outcomes json, lease interval)
returns table (endpoint_id text, token bigint)
language plpgsql volatile
as $$
declare
  runs constant jsonb := coalesce(
    (
      select jsonb_agg(each.lane - 'done_place' || jsonb_build_object('done_position', each.lane -> 'done_place'))
      from jsonb_array_elements(lanes::jsonb) as each (lane)
    ),
    '[]'
  );
  results constant jsonb := coalesce(
    (
      select jsonb_agg(each.outcome - 'place' || jsonb_build_object('queue_position', each.outcome -> 'place'))
      from jsonb_array_elements(outcomes::jsonb) as each (outcome)
    ),
    '[]'
  );
begin
  return query
    select r.endpoint_id, r.token from webhooks.record_runs(runs::json, results::json, lease) as r;
end
$$;

create or replace function webhooks.wake_lanes(endpoint_ids text[]) returns void
language plpgsql volatile
as $$
begin
  perform webhooks.wake_endpoints(endpoint_ids);
end
$$;

create or replace function webhooks.stand(organization text, delivery_ids text[]) returns void
language plpgsql volatile
as $$
begin
  perform webhooks.enqueue_deliveries(organization, delivery_ids);
end
$$;

create or replace function webhooks.place_due_retries(at timestamptz, most integer, out placed integer, out endpoint_ids text[])
language plpgsql volatile
as $$
begin
  select r.enqueued, r.endpoint_ids into placed, endpoint_ids
  from webhooks.enqueue_due_retries(at, most) as r;
end
$$;

create or replace function core.bury_dead_workers() returns setof text
language plpgsql volatile
as $$
begin
  return query select r.id from core.reap_dead_workers() as r (id);
end
$$;
