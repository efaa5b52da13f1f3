-- The identity of this database: another one after a dump was restored, where transactions have other numbers.
create or replace function core.database_epoch() returns text
language sql stable
as $$
  select format('%s-%s', c.system_identifier, d.oid)
  from pg_control_system() c
  cross join pg_database d
  where d.datname = current_database()
$$;

-- Notes the transaction that changed a row last (changed_in), so that a change feed can give what a reader has not seen: rows that were not visible
-- in the snapshot in which it read before. Snapshots and transactions stand in columns as 64 bits: no freeze and no wraparound changes them.
create or replace function core.note_change() returns trigger
language plpgsql
as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

-- Makes the numbers of transactions in a restored dump those of this cluster: whatever the dump has is of before. Each schema of a product may
-- have a procedure adopt_restored(), which runs while the old numbers stand.
create or replace procedure core.adopt()
language plpgsql
as $$
declare
  here constant bigint := (select c.system_identifier from pg_control_system() c);
  statement text;
begin
  if exists (select from core.cluster c where c.system_identifier = here) then
    return;
  end if;
  if exists (select from core.cluster) then
    for statement in
      select format('call %I.adopt_restored()', n.nspname)
      from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace
      where p.proname = 'adopt_restored' and n.nspname in (select core.own_schemas())
      union all
      select format('update %s set %I = ''1'' where %2$I >= pg_snapshot_xmin(pg_current_snapshot())', c.oid::regclass, a.attname)
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attname = 'inserted_in'
      where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace::regnamespace::text in (select core.own_schemas())
      -- Each `call` before each `update`.
      order by 1
    loop
      execute statement;
    end loop;
    perform core.hold_for('another cluster');
  else
    insert into core.cluster (system_identifier, timeline, database_oid, table_oid)
    select h.* from core.here() h;
  end if;
end
$$;
