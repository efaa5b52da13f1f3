-- Invariants of events and deliveries: one row for each violation.
create or replace function webhooks.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an event is delivered to an endpoint once', d.organization_id, d.endpoint_id, format('%s has %s deliveries', d.event_id, count(*))
  from webhooks.delivery d
  where d.replay_of is null
  group by d.organization_id, d.endpoint_id, d.event_id
  having count(*) > 1

  union all
  select 'deliveries have queue positions of their own', d.organization_id, d.endpoint_id, format('queue position %s is taken %s times', d.queue_position, count(*))
  from webhooks.delivery d
  group by d.organization_id, d.endpoint_id, d.queue_position
  having count(*) > 1

  union all
  select 'what waits to be sent is queued, and nothing else', d.organization_id, d.id,
    format('it is %s, and queue position %s holds %s', d.status, d.queue_position, coalesce(q.delivery_id, 'nothing'))
  from webhooks.delivery d
  left join webhooks.queued_delivery q on q.endpoint_id = d.endpoint_id and q.queue_position = d.queue_position
  where (d.status = 'pending' and d.next_attempt_at is null) is distinct from (q.delivery_id is not distinct from d.id)

  union all
  select 'a queued delivery was not passed over', d.organization_id, d.delivery_id,
    format('its queue position is %s, and all up to %s is done', d.queue_position, q.done_position)
  from webhooks.queued_delivery d
  left join webhooks.endpoint_queue q using (endpoint_id)
  where d.queue_position <= q.done_position
    or q.endpoint_id is null

  union all
  select 'attempts are counted', d.organization_id, d.id, format('attempt is %s, the log has %s', d.attempt, coalesce(a.count, 0))
  from webhooks.delivery d
  left join (
    select x.organization_id, x.delivery_id, count(*) from webhooks.attempt x group by x.organization_id, x.delivery_id
  ) as a on a.organization_id = d.organization_id and a.delivery_id = d.id
  where d.attempt <> coalesce(a.count, 0)

  union all
  select 'events have positions of their own', min(e.organization_id), min(e.id), format('position %s is taken %s times', e.position, count(*))
  from webhooks.event e
  group by e.position
  having count(*) > 1

  union all
  select 'what waits to be fanned out is logged', p.organization_id, p.event_id, format('position %s', p.position)
  from webhooks.pending_event p
  where not exists (
    select from webhooks.event e
    where e.organization_id = p.organization_id and e.id = p.event_id and e.position = p.position
  )

  union all
  -- Endpoints that are as they were before the event. A minute is longer than any transaction that changed one may have lasted.
  select 'an event goes to every endpoint that wants it', e.organization_id, e.id, format('%s has no delivery of it', w.id)
  from webhooks.endpoint w
  join webhooks.event e
    on e.organization_id = w.organization_id and e.program_id = w.program_id and e.created_at > w.updated_at + interval '1 minute'
  where w.status = 'enabled' and w.deleted_at is null
    and w.livemode = e.livemode
    and w.listens_from < e.position
    and (w.listens_until is null or e.position < w.listens_until)
    and (w.event_types = '{}' or e.type = any (w.event_types))
    and (w.partner_id is null or (w.partner_id = e.partner_id and e.postback_body is not null))
    and not exists (select from webhooks.pending_event p where p.position = e.position)
    and not exists (
      select from webhooks.delivery d
      where d.organization_id = e.organization_id and d.endpoint_id = w.id and d.event_id = e.id
    )
$$;
comment on function webhooks.audit() is 'The invariants of deliveries; a clean database gives no row.';
