-- The start of a day in a time zone: its first instant, also where midnight occurs twice or not at all. Clocks were put back by up to three hours.
create or replace function program.local_start(day date, zone text) returns timestamptz
language sql stable
as $$
  select min(c.at)
  from (
    select (day::timestamp at time zone zone) - make_interval(mins => m.minutes) as at
    from (values (0), (30), (60), (120), (180)) as m (minutes)
  ) as c
  where (c.at at time zone zone)::date >= day
$$;
comment on function program.local_start(date, text) is 'The first instant of a day in a time zone.';
