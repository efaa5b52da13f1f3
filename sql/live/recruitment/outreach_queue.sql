-- The times at which emails go, as the limits of outreach hold them. A claim (src/recruitment/sending) checks by itself, email by email; this
-- says ahead of it what it will find, for people, for the sweep that wakes inboxes, and for metrics.

-- The first time from `at` on that is in the window of a schedule, by the clock of a zone: what nextOpening of campaigns/window.ts says, except in a
-- night in which that clock is changed, where it may be an hour off.
create or replace function recruitment.next_opening(schedule jsonb, zone text, at timestamptz) returns timestamptz
language sql stable
as $$
  select min(greatest(at, (day.date + (schedule ->> 'from')::time) at time zone zone))
  from generate_series(0, 8) as ahead (days)
  cross join lateral (select (at at time zone zone)::date + ahead.days as date) as day
  where schedule -> 'days' @> to_jsonb(extract(isodow from day.date)::integer)
    and at < (day.date + (schedule ->> 'to')::time) at time zone zone
$$;

-- `recipient` is another zone for each prospect: an email of it goes when it is due, and the claim moves what is due too early.
create or replace function recruitment.opening_from(schedule jsonb, zone text, at timestamptz) returns timestamptz
language sql stable
as $$
  select case
    when schedule ->> 'timezone' = 'recipient' or opening.at <= greatest(opening_from.at, now()) then opening_from.at
    else opening.at
  end
  from (select recruitment.next_opening(schedule, zone, greatest(opening_from.at, now())) as at) as opening
$$;

-- Until when a campaign begins no more sequences: the next day of its zone, once daily_new_limit is reached. Null: it does.
create or replace function recruitment.begins_from(c recruitment.campaign, zone text) returns timestamptz
language sql stable
as $$
  select (d.day + 1)::timestamp at time zone zone
  from recruitment.campaign_day d
  where d.organization_id = c.organization_id and d.campaign_id = c.id and d.day = (now() at time zone zone)::date
    and d.begun >= c.daily_new_limit
$$;

-- The zone in which a campaign counts days: its schedule's, or the brand's where each recipient has its own.
create or replace function recruitment.zone_of(c recruitment.campaign) returns text
language sql stable
as $$
  select core.zone(case when c.schedule ->> 'timezone' = 'recipient' then b.default_timezone else c.schedule ->> 'timezone' end)
  from recruitment.brand b
  where b.organization_id = c.organization_id and b.id = c.brand_id
$$;

-- The earliest time of a sequence's next email as far as is known: when it is due, later where a limit, its inbox or the window holds it.
create or replace function recruitment.goes_at(s recruitment.sequence) returns timestamptz
language sql stable
as $$
  select case
    when c.state <> 'sending' or s.next_step >= jsonb_array_length(c.steps) then s.due_at
    else recruitment.opening_from(
      c.schedule, clock.zone,
      greatest(
        s.due_at, s.paused_until, i.next_slot_at, i.waits_until, i.rests_until,
        case when s.state = 'waiting' then recruitment.begins_from(c, clock.zone) end
      )
    )
  end
  from recruitment.campaign c
  join recruitment.inbox i on i.organization_id = s.organization_id and i.id = s.inbox_id
  cross join lateral (select recruitment.zone_of(c) as zone) as clock
  where c.organization_id = s.organization_id and c.id = s.campaign_id and s.open and s.due_at is not null
$$;

-- `+ 0`: the first of a queue is found by sequence_queue, whatever statistics say; by sequence_to_complete all that a campaign has are read.
create or replace view recruitment.outreach_queue with (security_invoker = true) as
select
  c.organization_id, c.id as campaign_id, i.id as inbox_id, first.state, first.due_at, jsonb_array_length(c.steps) as steps,
  greatest(i.next_slot_at, i.waits_until, i.rests_until) as inbox_free_at,
  opening.at as goes_at,
  case
    when opening.at <= now() then null
    when opening.at > held.at then 'window'
    when held.reason <> 'due' then held.reason
    when c.schedule ->> 'timezone' <> 'recipient' and held.at = recruitment.next_opening(c.schedule, clock.zone, now()) then 'window'
    when company.sent >= c.max_per_domain_day then 'company_limit'
    else 'due'
  end as waits_for,
  case
    when opening.at > now() then null
    when c.schedule ->> 'timezone' = 'recipient' then held.at
    else greatest(held.at, ((now() at time zone clock.zone)::date + (c.schedule ->> 'from')::time) at time zone clock.zone)
  end as free_since
from recruitment.campaign c
join recruitment.inbox i on i.organization_id = c.organization_id and i.status = 'connected' and i.deleted_at is null
cross join lateral (select recruitment.zone_of(c) as zone) as clock
cross join (values ('active'), ('waiting')) as begun (state)
cross join lateral (
  select s.state, s.due_at, s.company_hmac
  from recruitment.sequence s
  where s.organization_id = c.organization_id and s.inbox_id = i.id and s.campaign_id = c.id and s.state = begun.state and s.open
    and s.due_at is not null and s.next_step + 0 < jsonb_array_length(c.steps)
    and not s.paused_by_user and not s.is_held and (s.paused_until is null or s.paused_until <= now())
  order by s.due_at
  limit 1
) as first
cross join lateral (
  select o.reason, o.at
  from (
    values
      ('due', first.due_at),
      ('gap', i.next_slot_at),
      ('provider', i.waits_until),
      (coalesce(i.rests_for, 'cap'), i.rests_until),
      ('daily_new_limit', case when first.state = 'waiting' then recruitment.begins_from(c, clock.zone) end)
  ) as o (reason, at)
  where o.at is not null
  order by o.at desc, o.reason
  limit 1
) as held
cross join lateral (select recruitment.opening_from(c.schedule, clock.zone, held.at) as at) as opening
left join recruitment.company_day company
  on company.organization_id = c.organization_id and company.campaign_id = c.id and company.company_hmac = first.company_hmac
    and company.day = (now() at time zone clock.zone)::date
where c.state = 'sending' and not c.is_unscheduling;
comment on view recruitment.outreach_queue is 'What each connected inbox sends first for each campaign that sends, a follow-up (active) and a first email (waiting): when it goes, and what it waits for until then.';
grant select on recruitment.outreach_queue to rail_api;
