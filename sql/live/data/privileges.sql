-- The privileges that make the views of schema data safe, defined once: `rail migrate` runs these statements every time, and `rail audit` reads them.
-- A view reads as its owner, rail_data, who is subject to the row-level security of the tables because it owns none. It may read the columns that its
-- views show and no other; those who log in are members of rail_data_reader, which may read the views and no table.

-- Deviations from these privileges, each with the statement that corrects it.
create or replace function data.missing_privileges() returns table (subject text, missing text, statement text)
language sql stable
as $$
  with role as (
    select to_regrole('rail_data')::oid as owner, to_regrole('rail_data_reader')::oid as reader
  ),
  view as materialized (
    select v.oid as id, format('data.%I', v.relname) as name, v.relowner as owner, v.reloptions as options, v.relacl as acl
    from pg_class v
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v'
  ),
  -- Functions that read tables run as the owner of the views; the two that return who reads run as the service.
  reading_function as materialized (
    select f.oid as id, f.oid::regprocedure::text as name, f.proowner as owner,
      f.proname in ('organization_id', 'sees_personal') as tells_who_reads
    from pg_proc f
    where f.pronamespace = 'data'::regnamespace and f.prosecdef
  ),
  column_read as materialized (
    select c.table_id, c.table_id::regclass::text as table_name, c.column_name from data.columns_read() c
  ),
  table_read as materialized (
    select distinct c.table_id, c.table_name,
      case when c.table_id = 'core.organization'::regclass then 'id' else 'organization_id' end as organization_column
    from column_read c
  )
  select 'rail_data', format('%I is not a member of it', current_user), format('grant rail_data to %I', current_user)
  from role where pg_has_role(role.owner, 'USAGE') is not true

  union all
  select 'rail_data_reader', format('%I is not a member of it', current_user), format('grant rail_data_reader to %I', current_user)
  from role where pg_has_role(role.reader, 'USAGE') is not true

  union all
  select 'data', 'the role rail_data lacks CREATE, without which it cannot own views', 'grant usage, create on schema data to rail_data'
  from role where has_schema_privilege(role.owner, 'data', 'create') is not true

  union all
  select 'data', 'the role rail_data_reader lacks USAGE', 'grant usage on schema data to rail_data_reader'
  from role where has_schema_privilege(role.reader, 'data', 'usage') is not true

  union all
  select n.nspname, 'the role rail_data lacks USAGE', format('grant usage on schema %I to rail_data', n.nspname)
  from role
  cross join (select distinct t.relnamespace as id from table_read r join pg_class t on t.oid = r.table_id) as read
  join pg_namespace n on n.oid = read.id
  where has_schema_privilege(role.owner, n.oid, 'usage') is not true

  union all
  select v.name, 'it does not belong to rail_data: it would show the rows of every organization', format('alter view %s owner to rail_data', v.name)
  from view v, role where v.owner <> role.owner

  union all
  select v.name, 'it is not a security barrier', format('alter view %s set (security_barrier = true)', v.name)
  from view v where not coalesce(v.options && '{security_barrier=true,security_barrier=on}', false)

  union all
  select v.name, 'it reads as its reader', format('alter view %s reset (security_invoker)', v.name)
  from view v where coalesce(v.options && '{security_invoker=true,security_invoker=on}', false)

  union all
  select v.name, 'the role rail_data_reader may not read it', format('grant select on %s to rail_data_reader', v.name)
  from view v, role where has_table_privilege(role.reader, v.id, 'select') is not true

  union all
  select v.name, format('%s has %s', grantee.name, string_agg(has.privilege_type, ', ')),
    format('revoke %s on %s from %s', string_agg(has.privilege_type, ', '), v.name, grantee.name)
  from view v
  cross join role
  cross join aclexplode(v.acl) as has
  cross join lateral (select case when has.grantee = 0 then 'public' else has.grantee::regrole::text end as name) as grantee
  where has.grantee <> v.owner and not (has.grantee = role.reader and has.privilege_type = 'SELECT')
  group by v.name, grantee.name

  union all
  select f.name, 'it does not run as rail_data', format('alter function %s owner to rail_data', f.name)
  from reading_function f, role where f.owner <> role.owner and not f.tells_who_reads

  union all
  select f.name, format('the role %s may not call it', caller.name), format('grant execute on function %s to %s', f.name, caller.name)
  from reading_function f
  cross join role
  cross join lateral (values (role.reader, 'rail_data_reader'), (role.owner, 'rail_data')) as caller (id, name)
  where has_function_privilege(caller.id, f.id, 'execute') is not true

  union all
  select c.table_name, format('the role rail_data may not read %s', string_agg(c.column_name, ', ')),
    format('grant select (%s) on %s to rail_data', string_agg(quote_ident(c.column_name), ', '), c.table_name)
  from column_read c
  cross join role
  where has_column_privilege(role.owner, c.table_id, c.column_name, 'select') is not true
  group by c.table_name

  union all
  select format('%I.%I', n.nspname, t.relname), format('the role rail_data may %s %s, which no view shows', lower(has.privilege_type), a.attname),
    format('revoke %s (%I) on %I.%I from rail_data', has.privilege_type, a.attname, n.nspname, t.relname)
  from pg_attribute a
  join pg_class t on t.oid = a.attrelid
  join pg_namespace n on n.oid = t.relnamespace
  cross join role
  cross join aclexplode(a.attacl) as has
  where has.grantee = role.owner and not a.attisdropped
    and not (
      has.privilege_type = 'SELECT'
      and exists (select from column_read c where c.table_id = a.attrelid and c.column_name = a.attname)
    )

  union all
  select format('%I.%I', n.nspname, t.relname), 'a role of schema data has privileges on all of it',
    format('revoke all on %I.%I from rail_data, rail_data_reader', n.nspname, t.relname)
  from pg_class t
  join pg_namespace n on n.oid = t.relnamespace
  cross join role
  where n.nspname in (select core.own_schemas()) and n.nspname <> 'data' and t.relkind in ('r', 'p', 'v', 'S')
    and exists (select from aclexplode(t.relacl) as has where has.grantee in (role.owner, role.reader))

  union all
  select t.table_name, 'it has no policy for the role rail_data, or another one',
    format('drop policy if exists data_of_organization on %s; ', t.table_name)
      || format('create policy data_of_organization on %s for select to rail_data ', t.table_name)
      || format('using (%I = (select data.organization_id()))', t.organization_column)
  from table_read t
  cross join role
  where not exists (
    select from pg_policy p
    where p.polrelid = t.table_id and p.polname = 'data_of_organization' and p.polroles = array[role.owner] and p.polcmd = 'r'
      and p.polpermissive
      and core.bare_condition(pg_get_expr(p.polqual, p.polrelid))
        = core.bare_condition(format('%I = (select data.organization_id())', t.organization_column))
  )

  union all
  select c.relation_id::regclass::text, format('Postgres samples the values of %s, which EXPLAIN shows', string_agg(c.column_name, ', ')),
    case
      when c.relation_id = c.table_id then
        format('alter table %s ', c.relation_id::regclass) || string_agg(format('alter column %I set statistics 0', c.column_name), ', ')
      else format('alter index %s ', c.relation_id::regclass) || string_agg(format('alter column %s set statistics 0', c.attribute), ', ')
    end
  from data.columns_without_statistics() c
  where c.has_target
  group by c.relation_id, c.table_id
$$;
comment on function data.missing_privileges() is 'What the roles and views of schema data lack or have too much of, and what sets it right; none after a migration.';
