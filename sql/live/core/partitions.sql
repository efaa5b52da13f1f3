-- Makes the weekly partitions of a table that is partitioned by range (id), from the week of `first` to the week of `last`. Those of the
-- table's first prefix are called by their week alone; those of a further prefix carry it in their names. Who reads or writes the table queues
-- up behind the lock that a new partition takes, so that it is not waited for: it fails with 55P03 instead, and its job runs again.
create or replace procedure core.ensure_weekly_partitions(parent regclass, prefix text, first timestamptz, last timestamptz)
language plpgsql
set lock_timeout = '500ms'
as $$
declare
  week timestamptz;
  name text;
  schema_name text := (select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = parent);
  parent_name text := (select c.relname from pg_class c where c.oid = parent);
  is_further boolean := exists (
    select
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = parent
      and c.relname ~ ('^' || parent_name || '_\d{8}$')
      -- FOR VALUES FROM ('evt_01k…') TO ('evt_01k…')
      and not starts_with(split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2), prefix || '_')
  );
  infix text := case when is_further then '_' || prefix else '' end;
begin
  for week in
    select generate_series(date_trunc('week', first at time zone 'UTC'), date_trunc('week', last at time zone 'UTC'), '1 week')
      at time zone 'UTC'
  loop
    name := parent_name || infix || '_' || to_char(week at time zone 'UTC', 'YYYYMMDD');
    if to_regclass(format('%I.%I', schema_name, name)) is null then
      execute format(
        'create table %I.%I partition of %s for values from (%L) to (%L)',
        schema_name, name, parent,
        prefix || '_' || core.id_time_part(week),
        prefix || '_' || core.id_time_part(week + interval '7 days')
      );
      -- Without a policy of its own: whoever is granted a partition sees nothing, and reads through the parent.
      execute format('alter table %I.%I enable row level security', schema_name, name);
      -- Postgres samples no values where its parent says so: it does not inherit that.
      execute coalesce(
        (
          select format('alter table %I.%I ', schema_name, name) || string_agg(format('alter column %I set statistics 0', a.attname), ', ')
          from pg_attribute a
          where a.attrelid = parent and a.attstattarget = 0 and a.attnum > 0 and not a.attisdropped
        ),
        'select'
      );
    end if;
  end loop;
end
$$;
