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
  select 'what waits stands in its place', d.organization_id, d.id, format('it is %s, and place %s is %s', d.status, d.place, coalesce(s.delivery_id, 'empty'))
  from webhooks.delivery d
  left join webhooks.standing s on s.endpoint_id = d.endpoint_id and s.place = d.place
  where (d.status = 'pending' and d.next_attempt_at is null) is distinct from (s.delivery_id is not distinct from d.id)

  union all
  select 'who stands was not passed', s.organization_id, s.delivery_id, format('it stands at %s, and all up to %s is done', s.place, l.done_place)
  from webhooks.standing s
  left join webhooks.lane l using (endpoint_id)
  where s.place <= l.done_place
    or l.endpoint_id is null

  union all
  select 'attempts are counted', d.organization_id, d.id, format('attempt is %s, the log has %s', d.attempt, count(a.attempt))
  from webhooks.delivery d
  left join webhooks.attempt a on a.organization_id = d.organization_id and a.delivery_id = d.id
  group by d.organization_id, d.id, d.attempt
  having d.attempt <> count(a.attempt)

$$;
comment on function webhooks.audit() is 'The invariants of deliveries; a clean database gives no row.';
