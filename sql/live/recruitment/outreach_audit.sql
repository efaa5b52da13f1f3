-- Invariants of outreach: one row for each violation. Beside a running service a message that is being sent has a worker, or is about to be given to
-- another one.
create or replace function recruitment.outreach_audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an address has one open sequence', s.organization_id, min(s.id), format('%s open sequences', count(*))
  from recruitment.sequence s
  where s.open and s.address_hmac is not null
  group by s.organization_id, s.address_hmac
  having count(*) > 1

  union all
  select 'an inbox sends one email at a time', m.organization_id, m.inbox_id, format('%s are being sent', count(*))
  from recruitment.message m
  where m.state = 'sending'
  group by m.organization_id, m.inbox_id
  having count(*) > 1

  union all
  select 'an email is sent once for each step', m.organization_id, m.sequence_id, format('step %s', m.step_index)
  from recruitment.message m
  where m.purpose = 'sequence' and m.sequence_id is not null
  group by m.organization_id, m.sequence_id, m.step_index
  having count(*) > 1

  union all
  select 'a day of an inbox counts the emails that it sent', coalesce(d.organization_id, m.organization_id), coalesce(d.inbox_id, m.inbox_id),
    format('%s: %s counted, %s sent', coalesce(d.day, m.day), coalesce(d.sent, 0), coalesce(m.sent, 0))
  from recruitment.inbox_day d
  full join (
    select x.organization_id, x.inbox_id, x.counted_on as day, count(*)::integer as sent
    from recruitment.message x
    where x.counted_on is not null
    group by 1, 2, 3
  ) as m on m.organization_id = d.organization_id and m.inbox_id = d.inbox_id and m.day = d.day
  where coalesce(d.sent, 0) <> coalesce(m.sent, 0)

  union all
  select 'a day of a campaign counts its first emails', coalesce(d.organization_id, m.organization_id), coalesce(d.campaign_id, m.campaign_id),
    format('%s: %s counted, %s sent', coalesce(d.day, m.day), coalesce(d.begun, 0), coalesce(m.begun, 0))
  from recruitment.campaign_day d
  full join (
    select x.organization_id, x.campaign_id, x.campaign_counted_on as day, count(*)::integer as begun
    from recruitment.message x
    join recruitment.campaign c on c.organization_id = x.organization_id and c.id = x.campaign_id
    where x.campaign_counted_on is not null and x.step_index = 0
    group by 1, 2, 3
  ) as m on m.organization_id = d.organization_id and m.campaign_id = d.campaign_id and m.day = d.day
  where coalesce(d.begun, 0) <> coalesce(m.begun, 0)

  union all
  select 'a day of an organization counts the emails of its campaigns', coalesce(d.organization_id, m.organization_id),
    coalesce(d.organization_id, m.organization_id), format('%s: %s counted, %s sent', coalesce(d.day, m.day), coalesce(d.sent, 0), coalesce(m.sent, 0))
  from recruitment.organization_day d
  full join (
    select x.organization_id, x.organization_counted_on as day, count(*)::integer as sent
    from recruitment.message x
    where x.organization_counted_on is not null
    group by 1, 2
  ) as m on m.organization_id = d.organization_id and m.day = d.day
  where coalesce(d.sent, 0) <> coalesce(m.sent, 0)

  union all
  select 'what was not sent counts towards no limit', m.organization_id, m.id, m.state
  from recruitment.message m
  where m.state in ('planned', 'failed', 'cancelled') and num_nonnulls(m.counted_on, m.campaign_counted_on, m.organization_counted_on) > 0

  union all
  select 'an email that was sent has its time', m.organization_id, m.id, m.state
  from recruitment.message m
  where m.direction = 'outbound' and m.state in ('sent', 'bounced') and m.sent_at is null
    or m.state in ('planned', 'sending', 'unknown', 'failed', 'cancelled') and m.sent_at is not null

  union all
  select 'a sequence is past the steps that were sent', s.organization_id, s.id, format('step %s of %s', m.step_index, s.next_step)
  from recruitment.message m
  join recruitment.sequence s on s.organization_id = m.organization_id and s.id = m.sequence_id
  where m.purpose = 'sequence' and m.state in ('sent', 'bounced', 'unknown') and s.next_step <= m.step_index

  union all
  select 'an open sequence has begun when an email was sent', s.organization_id, s.id, s.state
  from recruitment.sequence s
  where s.open and (s.state = 'active') <> (s.next_step > 0)

  union all
  select 'an email is in a thread of its inbox', m.organization_id, m.id, format('thread %s', m.thread_id)
  from recruitment.message m
  join recruitment.thread t on t.organization_id = m.organization_id and t.id = m.thread_id
  where t.inbox_id <> m.inbox_id and m.direction = 'outbound'

  union all
  select 'a prospect who was sent an email was contacted', p.organization_id, p.id, p.stage
  from recruitment.message m
  join recruitment.prospect p on p.organization_id = m.organization_id and p.id = m.prospect_id
  where m.purpose = 'sequence' and m.state = 'sent' and p.stage = 'found' and not exists (
    select from recruitment.activity a
    where a.organization_id = p.organization_id and a.prospect_id = p.id and a.kind = 'stage_changed'
  )

  union all
  select 'a campaign that has ended has no open sequence', c.organization_id, c.id, c.state
  from recruitment.campaign c
  where c.state in ('stopped', 'finished') and exists (
    select from recruitment.sequence s
    where s.organization_id = c.organization_id and s.campaign_id = c.id and s.open
  ) and not exists (
    -- Its job ends what the request has left.
    select from graphile_worker.jobs j
    where j.key = 'stop_sequences:' || c.id and (j.attempts < j.max_attempts or j.locked_at is not null)
  )
$$;
comment on function recruitment.outreach_audit() is 'The invariants of outreach; a clean database gives no row.';
