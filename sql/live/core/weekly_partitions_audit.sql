-- The tables that have weekly partitions, and the last week that each has one for. A table has those of several prefixes: each counts by itself.
create or replace function core.partitioned_tables() returns table (name text, last_week date)
language sql stable
as $$
  select format('%I.%I', n.nspname, regexp_replace(c.relname, '_\d{8}$', '')), max(to_date(right(c.relname, 8), 'YYYYMMDD'))
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  join pg_class parent on parent.oid = i.inhparent and parent.relkind = 'p'
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in (select core.own_schemas()) and c.relname ~ '_\d{8}$'
  group by 1
$$;

-- Invariants of weekly partitions. Their jobs make them five weeks ahead, and fail while a table is always read.
create or replace function core.audit_partitions() returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'the next two weeks have their partitions', '', f.name,
    format('the last one is for the week of %s: the logs of workers say why keep_partitions fails', f.last_week)
  from core.partitioned_tables() f
  where f.last_week + 7 < (now() at time zone 'UTC')::date + 14
$$;
comment on function core.audit_partitions() is 'Tables whose partitions are not made in time; a database with a worker gives no row.';
