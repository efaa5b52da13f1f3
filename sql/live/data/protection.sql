-- Privileges that Postgres gives to everybody and that a login of a data team must not have: to hold the advisory locks by which workers prove that
-- they live, sleep on a connection, export snapshots, notify, write temporary tables and large objects (a read-only session is undone by SET), write
-- to the WAL (which a read-only session may), run code of a procedural language (DO), connect to other databases, and see what other sessions do and
-- how many rows are written to which table. They are taken from PUBLIC before the first login is made, and given to the roles that had them. Each row
-- is a statement, in the order to run them.

-- Returns whether a login may call a function that does more than compute from its arguments, by its name. Functions that a newer Postgres or an
-- extension adds are not allowed: the audit reports them, and `rail migrate` takes them from PUBLIC.
create or replace function data.may_be_called(name text, volatility "char") returns boolean
language sql immutable
return case
  when volatility = 'v' then name = any ('{
    array_sample,array_shuffle,clock_timestamp,current_query,currval,gen_random_uuid,lastval,nextval,pg_collation_actual_version,
    pg_database_collation_actual_version,pg_is_in_recovery,pg_jit_available,pg_get_wait_events,pg_partition_ancestors,pg_partition_tree,
    pg_sequence_last_value,random,random_normal,set_config,setseed,setval,timeofday,uuidv4,uuidv7}'::text[])
  when volatility = 'i' then true
  when name ~ '_to_xml' then false
  when name ~ '^(pg|txid)_' then name ~ '_(in|out|recv|send|is_visible|has_property)$'
    or name ~ '^pg_get_' and name <> 'pg_get_replication_slots'
    or name = any ('{
    pg_available_extension_versions,pg_available_extensions,pg_backend_pid,pg_basetype,pg_char_to_encoding,pg_client_encoding,pg_collation_for,
    pg_column_compression,pg_column_is_updatable,pg_column_size,pg_conf_load_time,pg_current_snapshot,pg_cursor,pg_describe_object,
    pg_encoding_to_char,pg_has_role,pg_identify_object,pg_identify_object_as_address,pg_input_error_info,pg_input_is_valid,
    pg_is_other_temp_schema,pg_listening_channels,pg_mcv_list_items,pg_my_temp_schema,pg_options_to_table,pg_postmaster_start_time,pg_prepared_statement,
    pg_relation_filenode,pg_relation_is_publishable,pg_relation_is_updatable,pg_sequence_parameters,pg_settings_get_flags,
    pg_show_all_settings,pg_tablespace_location,pg_timezone_abbrevs,pg_timezone_abbrevs_abbrevs,pg_timezone_abbrevs_zone,pg_timezone_names,
    pg_trigger_depth,pg_typeof,txid_current_snapshot}'::text[])
  else true
end;

create or replace function data.missing_protection() returns table (nth integer, subject text, missing text, statement text)
language sql stable
as $$
  with open_function as materialized (
    select string_agg(f.oid::regprocedure::text, ', ' order by f.oid::regprocedure::text) as all_of_them,
      string_agg(f.oid::regprocedure::text, ', ' order by f.oid::regprocedure::text)
        filter (where f.proname ~ '^pg_(stat_|lock_|blocking|safe_|notification|prepared_xact|control_|get_|ls_)|_size$|_lsn$|_wal|_replay_') as that_watch
    from pg_proc f
    where has_schema_privilege('public', f.pronamespace, 'usage') and f.prokind in ('f', 'p')
      and f.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype, 'language_handler'::regtype)
      and 'internal'::regtype <> all (f.proargtypes)
      and not data.may_be_called(f.proname, f.provolatile)
      and exists (
        select from aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) as has
        where has.grantee = 0 and has.privilege_type = 'EXECUTE'
      )
  ),
  service as (
    select format('rail_api, %I', current_user) as roles,
      format('rail_api, pg_monitor, %I', current_user) as roles_that_watch
  )
  select step.nth, 'functions', 'everybody may call ' || o.all_of_them, step.statement
  from open_function o
  cross join service s
  cross join lateral (
    values
      (1, format('grant execute on routine %s to %s', o.all_of_them, s.roles)),
      (1, 'grant execute on routine ' || o.that_watch || ' to pg_monitor'),
      (2, format('revoke execute on routine %s from public', o.all_of_them))
  ) as step (nth, statement)
  where step.statement is not null and o.all_of_them is not null

  union all
  -- Roles that could connect to another database still can.
  select step.nth, format('database %I', d.datname), 'everybody may connect to it', step.statement
  from pg_database d
  cross join lateral (
    select string_agg(format('%I', r.rolname), ', ' order by r.rolname) as roles
    from pg_roles r
    where r.rolcanlogin and not r.rolsuper and r.oid <> d.datdba and r.rolname !~ '^rail_data_[0-9a-z]{26}$'
  ) as connecting
  cross join lateral (
    values
      (1, format('grant connect on database %I to ', d.datname) || connecting.roles),
      (2, format('revoke connect on database %I from public', d.datname))
  ) as step (nth, statement)
  where d.datallowconn and d.datname <> current_database() and step.statement is not null
    and exists (
      select from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as has
      where has.grantee = 0 and has.privilege_type = 'CONNECT'
    )

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

  union all
  select 2, l.subject, l.missing, l.statement
  from data.leftover_statistics() l
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
