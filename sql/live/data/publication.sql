-- The publication for logical replication: the columns that the views of schema data read, and the keys of their tables. Nothing that is
-- encrypted or secret is among them. Row-level security does not apply to it: it holds the rows of all organizations, so it is for operators alone.
create or replace function data.publication_statement() returns text
language sql stable
as $$
  with published as (
    select c.table_id, c.column_name from data.columns_read() c
    union
    select i.indrelid, a.attname
    from pg_index i
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
    where i.indisprimary and i.indrelid in (select c.table_id from data.columns_read() c)
  ),
  by_table as (
    select t.oid::regclass::text as name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from published p
    join pg_class t on t.oid = p.table_id
    join pg_attribute a on a.attrelid = p.table_id and a.attname = p.column_name and a.attgenerated = ''
    -- Without a key, an update or a deletion could not be published.
    where exists (select from pg_index i where i.indrelid = t.oid and i.indisprimary)
    group by t.oid
  )
  select format(
    'create publication rail_data for table %s with (publish_via_partition_root = true)',
    string_agg(format('%s (%s)', b.name, b.columns), ', ' order by b.name)
  )
  from by_table b
$$;
comment on function data.publication_statement() is 'The statement that creates the publication rail_data, for logical replication to a warehouse of the operator.';
