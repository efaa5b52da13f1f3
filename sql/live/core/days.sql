-- The days (UTC) from the one of a time to the one of another. With the prefix of ids, also those between which the ids of a day's rows lie: ids begin
-- with the time of the service's clock, which is taken to differ by less than an hour from the database's. None where a time is null.
-- Its text is kept parsed, because who reads a view with it may not use the schema.
create or replace function core.days_between(first timestamptz, last timestamptz, id_prefix text default null)
returns table (day date, starts_at timestamptz, ends_at timestamptz, first_id text, after_id text)
language sql immutable parallel safe
begin atomic
  select
    d.day::date,
    d.day at time zone 'UTC',
    (d.day + interval '1 day') at time zone 'UTC',
    case when id_prefix is not null then id_prefix || '_' || core.id_time_part((d.day - interval '1 hour') at time zone 'UTC') end,
    case when id_prefix is not null then id_prefix || '_' || core.id_time_part((d.day + interval '25 hours') at time zone 'UTC') end
  from generate_series(date_trunc('day', first at time zone 'UTC'), last at time zone 'UTC', interval '1 day') as d (day);
end;
