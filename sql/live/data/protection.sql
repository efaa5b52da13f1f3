-- What Postgres lets everybody do, and a login of a data team must not: hold the advisory locks by which workers prove that they live, sleep on
-- a connection, write temporary tables and large objects (a read-only session is undone by SET), write to the WAL (which a read-only session may),
-- run code of a procedural language (DO), and see what other sessions do and how many rows are written to which table. Taken from PUBLIC before
-- the first login is made, and given to the service's own roles. Each row is a statement, in the order to run them.
create or replace function data.missing_protection() returns table (nth integer, subject text, missing text, statement text)
language sql stable
as $$
  with open_function as materialized (
    select family.subject, string_agg(f.oid::regprocedure::text, ', ' order by f.oid::regprocedure::text) as functions
    from pg_proc f
    cross join lateral (
      select case
        when f.proname ~ '^pg_(try_)?advisory_' then 'pg_advisory_*'
        when f.proname ~ '^pg_sleep' then 'pg_sleep*'
        when f.proname = 'pg_logical_emit_message' then 'pg_logical_emit_message'
        when f.proname ~ '^lo_|^lowrite$|^loread$' then 'large objects'
        when f.proname = 'pg_stat_get_activity' then 'pg_stat_get_activity'
        when f.proname ~ '^pg_stat_get_backend_' then 'pg_stat_get_backend_*'
        when f.proname ~ '^pg_stat_get_' and f.proargtypes[0] = 'oid'::regtype then 'pg_stat_get_* of tables and databases'
      end as subject
    ) as family
    where f.pronamespace = 'pg_catalog'::regnamespace and f.prokind = 'f' and family.subject is not null
      and exists (
        select from aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) as has
        where has.grantee = 0 and has.privilege_type = 'EXECUTE'
      )
    group by family.subject
  ),
  service as (
    select format('rail_api, %I', current_user) as roles,
      format('rail_api, pg_monitor, %I', current_user) as roles_that_watch
  )
  select step.nth, o.subject, 'everybody may call it', step.statement
  from open_function o
  cross join service s
  cross join lateral (
    values
      (1, format(
        'grant execute on function %s to %s', o.functions,
        case when o.subject ~ '^pg_stat_get_' then s.roles_that_watch else s.roles end
      )),
      (2, format('revoke execute on function %s from public', o.functions))
  ) as step (nth, statement)

  union all
  select step.nth, 'pg_stat_activity', 'everybody sees which sessions there are', step.statement
  from pg_class v
  cross join service s
  cross join lateral (
    values
      (1, format('grant select on pg_catalog.pg_stat_activity to %s', s.roles_that_watch)),
      (2, 'revoke select on pg_catalog.pg_stat_activity from public')
  ) as step (nth, statement)
  where v.oid = 'pg_catalog.pg_stat_activity'::regclass
    and exists (select from aclexplode(v.relacl) as has where has.grantee = 0 and has.privilege_type = 'SELECT')

  union all
  select step.nth, 'temporary tables', 'everybody may make them', step.statement
  from pg_database d
  cross join lateral (
    values
      (1, format('grant temporary on database %I to %I', d.datname, current_user)),
      (2, format('revoke temporary on database %I from public', d.datname))
  ) as step (nth, statement)
  where d.datname = current_database()
    and exists (
      select from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as has
      where has.grantee = 0 and has.privilege_type = 'TEMPORARY'
    )

  union all
  select step.nth, 'language ' || language.lanname, 'everybody may run code in it', step.statement
  from pg_language language
  cross join lateral (
    values
      (1, format('grant usage on language %I to %I', language.lanname, current_user)),
      (2, format('revoke usage on language %I from public', language.lanname))
  ) as step (nth, statement)
  where language.lanpltrusted and language.laninline <> 0
    and exists (
      select from aclexplode(coalesce(language.lanacl, acldefault('l', language.lanowner))) as has
      where has.grantee = 0 and has.privilege_type = 'USAGE'
    )

  union all
  select 1, limited.parameter, format('%I may not set it for logins, which may fill the disk', current_user),
    format('grant set on parameter %s to %I', limited.parameter, current_user)
  from (values ('temp_file_limit'), ('log_min_messages')) as limited (parameter)
  where not has_parameter_privilege(current_user, limited.parameter, 'SET')

  union all
  select step.nth, 'schema public', 'everybody may make tables and functions in it', step.statement
  from pg_namespace n
  cross join lateral (
    values
      (1, format('grant create on schema public to %I', current_user)),
      (2, 'revoke create on schema public from public')
  ) as step (nth, statement)
  where n.nspname = 'public'
    and exists (select from aclexplode(n.nspacl) as has where has.grantee = 0 and has.privilege_type = 'CREATE')
  order by 1, 2
$$;
comment on function data.missing_protection() is 'What everybody may do that a login of a data team must not, and what sets it right.';

-- The same where there are logins: a restored database has lost it.
create or replace function data.lost_protection() returns table (subject text, missing text, statement text)
language sql stable
as $$
  select m.subject, m.missing, m.statement
  from data.missing_protection() m
  where exists (
    select from core.data_login l
    join pg_roles r on r.rolname = l.role_name
    where l.revoked_at is null
  )
  order by m.nth, m.subject
$$;
comment on function data.lost_protection() is 'What data.missing_protection() gives, where there are logins of data teams.';
