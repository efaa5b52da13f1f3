-- The columns that the views and functions of rail_data read, by what Postgres recorded of their text.
create or replace function data.columns_read() returns table (table_id oid, column_name name)
language sql stable
as $$
  select distinct d.refobjid, a.attname
  from pg_depend d
  left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  left join pg_class v on v.oid = r.ev_class and v.relnamespace = 'data'::regnamespace and v.relkind = 'v'
  left join pg_proc f on d.classid = 'pg_proc'::regclass and f.oid = d.objid and f.pronamespace = 'data'::regnamespace and f.prosecdef
  join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
  join pg_class t on t.oid = d.refobjid and t.relkind in ('r', 'p')
  where d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0 and (v.oid is not null or f.oid is not null)
$$;

-- Columns that EXPLAIN may show a login. Row-level security decides which rows come out, not which statistics the planner estimates by: they are of
-- the rows of all organizations, and `=` and `<` of most types may use them. So Postgres keeps statistics of those columns alone whose values
-- identify nobody: ids of ours, times, flags, small integers (counts, days, versions), and values from a list that everybody knows. All other columns
-- that views show, such as names, codes, amounts and ids that merchants set, have none, for the plans of the API too: its queries reach them by
-- indexes.

-- The columns that views show, in their tables and the partitions of these, and the text expressions of their indexes, that should have no statistics.
create or replace function data.columns_without_statistics()
returns table (relation_id oid, attribute smallint, table_id oid, column_name name, has_target boolean)
language sql stable
as $$
  with read as materialized (
    select c.table_id, c.column_name, a.atttypid as type_id
    from data.columns_read() c
    join pg_attribute a on a.attrelid = c.table_id and a.attname = c.column_name
  ),
  identifying as materialized (
    select r.table_id, r.column_name
    from read r
    where r.type_id not in ('timestamptz'::regtype, 'date'::regtype, 'boolean'::regtype, 'integer'::regtype)
      and not (r.type_id = 'text'::regtype and r.column_name ~ '(^|_)id$' and r.column_name !~ '^(external|product|request)_')
      and r.column_name <> all ('{position,payouts,clawback_of,replay_of}'::name[])
      and r.column_name <> all ('{type,event_type,kind,state,currency,country,country_code,language_code,method,rail,rate_type}'::name[])
      and not exists (
        select from pg_constraint k
        join pg_attribute a on a.attrelid = k.conrelid and k.conkey = array[a.attnum]
        where k.conrelid = r.table_id and k.contype = 'c' and a.attname = r.column_name and pg_get_constraintdef(k.oid) ~ '= ANY \('
      )
  ),
  relation as materialized (
    select t.table_id, coalesce(p.relid, t.table_id)::oid as relation_id
    from (select distinct r.table_id from read r) t
    left join lateral pg_partition_tree(t.table_id::regclass) p on true
  )
  select r.relation_id, a.attnum, r.relation_id, a.attname, coalesce(a.attstattarget, -1) <> 0
  from relation r
  join identifying i on i.table_id = r.table_id
  join pg_attribute a on a.attrelid = r.relation_id and a.attname = i.column_name

  union all
  select i.indexrelid, a.attnum, i.indrelid, a.attname, coalesce(a.attstattarget, -1) <> 0
  from relation r
  join pg_index i on i.indrelid = r.relation_id
  join pg_attribute a on a.attrelid = i.indexrelid and i.indkey[a.attnum - 1] = 0 and a.atttypid = 'text'::regtype
$$;

-- The values that Postgres has sampled of them before it was set not to.
create or replace function data.leftover_statistics() returns table (subject text, missing text, statement text)
language sql stable
as $$
  -- Read once: the view asks for a privilege for each column of each row.
  with sampled as materialized (
    select s.schemaname, s.tablename, s.attname, s.inherited
    from pg_stats s
    where s.schemaname in (select core.own_schemas())
  )
  select distinct format('%I.%I.%I', s.schemaname, s.tablename, s.attname), 'EXPLAIN shows its frequent values, of all organizations',
    case
      when to_regproc('pg_catalog.pg_clear_attribute_stats') is null or x.is_index then
        format('delete from pg_catalog.pg_statistic where starelid = %s and staattnum = %s', c.relation_id, c.attribute)
      else format('select pg_catalog.pg_clear_attribute_stats(%L, %L, %L, %L)', s.schemaname, s.tablename, s.attname, s.inherited)
    end
  from data.columns_without_statistics() c
  join pg_class r on r.oid = c.relation_id
  join sampled s on s.schemaname = r.relnamespace::regnamespace::text and s.tablename = r.relname and s.attname = c.column_name
  cross join lateral (select r.relkind in ('i', 'I') as is_index) as x
$$;
