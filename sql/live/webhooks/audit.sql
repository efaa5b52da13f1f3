-- What must always hold of events and deliveries: one row for each thing that does not.
create or replace function webhooks.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an endpoint is told of an event once', d.organization_id, d.endpoint_id, format('%s has %s deliveries', d.event_id, count(*))
  from webhooks.delivery d
  where d.replay_of is null
  group by d.organization_id, d.endpoint_id, d.event_id
  having count(*) > 1

  union all
  select 'no two deliveries stand in one place', d.organization_id, d.endpoint_id, format('place %s is taken %s times', d.place, count(*))
  from webhooks.delivery d
  group by d.organization_id, d.endpoint_id, d.place
  having count(*) > 1

  union all
  select 'places are within the lane', d.organization_id, d.id, format('it stands at %s, the last place is %s', d.place, l.last_place)
  from webhooks.delivery d
  join webhooks.lane l on l.endpoint_id = d.endpoint_id
  where d.place > l.last_place

  union all
  select 'what is passed is settled or waits for its time', d.organization_id, d.id, format('it stands at %s, %s are done', d.place, l.done_place)
  from webhooks.delivery d
  join webhooks.lane l on l.endpoint_id = d.endpoint_id
  where d.place <= l.done_place and d.status = 'pending' and d.next_attempt_at is null

  union all
  select 'attempts are counted', d.organization_id, d.id, format('attempt is %s, the log has %s', d.attempt, count(a.attempt))
  from webhooks.delivery d
  left join webhooks.attempt a on a.organization_id = d.organization_id and a.delivery_id = d.id
  group by d.organization_id, d.id, d.attempt
  having d.attempt <> count(a.attempt)

$$;
comment on function webhooks.audit() is 'The invariants of deliveries; a clean database gives no row.';
