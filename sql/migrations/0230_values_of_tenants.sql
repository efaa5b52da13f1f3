-- What statements over all organizations read of a row must not fail them. The zones of schedules are known by name alone: see core.zone().

alter table recruitment.campaign
  add constraint campaign_schedule_form check (
    coalesce(
      jsonb_typeof(schedule -> 'timezone') = 'string' and jsonb_typeof(schedule -> 'days') = 'array'
      and schedule ->> 'from' ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$' and schedule ->> 'to' ~ '^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$',
      false
    )
  ),
  add constraint campaign_steps_are_a_list check (jsonb_typeof(steps) = 'array');

-- The amounts of one subject may come to more than a bigint holds, and its notes are added up together with those of others.
drop function if exists program.totals_of(text, text[]);
drop view if exists program.total;
alter table program.tally alter column amount_minor type numeric;
