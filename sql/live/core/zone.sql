-- Names of time zones. Postgres takes abbreviations for zones before it looks for names (IST is Israel's, PST knows no summer), and other programs
-- take them for other zones: a name that is an abbreviation too is none, but for UTC and GMT, which are the same everywhere.

-- The zone that is stored, or UTC where Postgres does not know it (any more): a name of old is lost with an upgrade of its files, and one row must
-- not fail a statement over all. Whatever reads a stored zone calls this.
create or replace function core.zone(name text) returns text
language plpgsql stable
as $$
begin
  if name in ('UTC', 'GMT') then
    return name;
  end if;
  if name is null or name !~ '^[A-Za-z]' or (name !~ '/' and exists (select from pg_timezone_abbrevs a where lower(a.abbrev) = lower(name))) then
    return 'UTC';
  end if;
  perform now() at time zone name;
  return name;
exception
  when invalid_parameter_value then
    return 'UTC';
end
$$;
comment on function core.zone(text) is 'A stored time zone, or UTC where Postgres does not know it.';
