-- Which database this is: another one after a dump was restored, where transactions have other numbers.
create or replace function core.database_epoch() returns text
language sql stable
as $$
  select format('%s-%s', c.system_identifier, d.oid)
  from pg_control_system() c
  cross join pg_database d
  where d.datname = current_database()
$$;

-- Which transaction changed a row last (changed_in), so that a change feed can give what a reader has not seen: what was not visible in the
-- snapshot in which it read before. Snapshots and transactions stand in columns as 64 bits: no freeze and no wraparound changes them.
create or replace function core.note_change() returns trigger
language plpgsql
as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;
