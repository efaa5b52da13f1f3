-- Which database this is: another one after a dump was restored, where transactions have other numbers.
create or replace function core.database_epoch() returns text
language sql stable
as $$
  select format('%s-%s', c.system_identifier, d.oid)
  from pg_control_system() c
  cross join pg_database d
  where d.datname = current_database()
$$;
