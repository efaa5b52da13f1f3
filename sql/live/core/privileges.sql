-- The privileges of the API's role, defined once. `rail migrate` runs the statements of core.missing_privileges() every time, so that a database that
-- was restored without the role, or whose role was changed, serves again; `/readyz` and `rail audit` read it too.

-- The schemas of this service: each has a folder under sql/live.
create or replace function core.own_schemas() returns setof text
language sql stable
as $$
  select distinct split_part(a.name, '/', 2) from migration.applied a where a.name like 'live/%/%'
$$;

-- The tables and views of organizations. A partition is only reached through its parent.
create or replace function core.tenant_relations()
returns table (id oid, name text, kind "char", is_partition boolean, is_protected boolean, organization_column text, owner oid)
language sql stable
as $$
  select
    c.oid, format('%I.%I', n.nspname, c.relname), c.relkind, c.relispartition,
    case c.relkind
      when 'v' then coalesce(c.reloptions && '{security_invoker=true,security_invoker=on}', false)
      else c.relrowsecurity
    end,
    a.attname::text, c.relowner
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
    and a.attname = case when n.nspname = 'core' and c.relname = 'organization' then 'id' else 'organization_id' end
  where c.relkind in ('r', 'p', 'v') and n.nspname in (select core.own_schemas())
$$;

-- The privileges of the API's role by table, view, sequence and column. In core each table is listed. In the schemas of products the rule is: the
-- rows of its organization in every table, and every sequence to read and draw from.
create or replace function core.api_privileges() returns table (id oid, name text, kind "char", privileges text[], columns text[])
language sql stable
as $$
  select r.id, r.name, r.kind, array['select', 'insert', 'update', 'delete'], null::text[]
  from core.tenant_relations() r
  where r.name in ('core.idempotency_key', 'core.deleted_object', 'core.export_position')

  union all
  -- Entries are only added: nobody changes the audit log over the API.
  select r.id, r.name, r.kind, array['select', 'insert'], null
  from core.tenant_relations() r
  where r.name = 'core.audit_entry'

  union all
  select r.id, r.name, r.kind, array[allowed.privilege], allowed.columns
  from core.tenant_relations() r
  cross join (
    values
      ('select', '{organization_id,id,email,name,role,removed_at,created_at,updated_at}'::text[]),
      ('insert', '{organization_id,id,email,name,role,created_at,updated_at}'),
      ('update', '{name,role,removed_at,updated_at}')
  ) as allowed (privilege, columns)
  where r.name = 'core.user_account'

  union all
  -- A page sees all of a session but the hash of the cookie. It ends sessions, and does not open them.
  select r.id, r.name, r.kind, array[allowed.privilege], allowed.columns
  from core.tenant_relations() r
  cross join (
    values
      ('select', '{organization_id,id,user_id,partner_id,user_agent,confirmed_at,last_seen_at,expires_at,revoked_at,created_at}'::text[]),
      ('update', '{revoked_at}')
  ) as allowed (privilege, columns)
  where r.name = 'core.session'

  union all
  -- The API sees all of a key but the hashes. It adds keys; it changes what restricts one, and neither whose it is nor how often it may ask.
  select r.id, r.name, r.kind, array[allowed.privilege], allowed.columns
  from core.tenant_relations() r
  cross join (
    values
      ('select', '{organization_id,id,name,mode,scopes,rate_limit,signature_required,user_id,expires_at,ip_ranges,previous_secret_expires_at,last_used_at,revoked_at,created_at,updated_at}'::text[]),
      ('insert', '{organization_id,id,name,mode,secret_sha256,scopes,rate_limit,signature_required,user_id,expires_at,ip_ranges,created_at,updated_at}'),
      ('update', '{name,scopes,expires_at,ip_ranges,signature_required,revoked_at,updated_at}')
  ) as allowed (privilege, columns)
  where r.name = 'core.api_key'

  union all
  select
    r.id, r.name, r.kind,
    -- A view that takes writes takes INSERT, UPDATE and DELETE: 8, 4 and 16.
    case
      when r.kind = 'v' and pg_relation_is_updatable(r.id, false) & 28 <> 28 then array['select']
      -- Rows of a table with a restrictive policy for UPDATE are added, and go with what they belong to.
      when exists (select from pg_policy p where p.polrelid = r.id and not p.polpermissive and p.polcmd = 'w' and p.polname !~ '^partner_') then array['select', 'insert']
      else array['select', 'insert', 'update', 'delete']
    end,
    null
  from core.tenant_relations() r
  where not starts_with(r.name, 'core.') and not r.is_partition

  union all
  select s.oid, format('%I.%I', n.nspname, s.relname), s.relkind, array['usage', 'select'], null
  from pg_class s
  join pg_namespace n on n.oid = s.relnamespace
  where s.relkind = 'S' and n.nspname in (select core.own_schemas()) and n.nspname <> 'core'
$$;

-- The condition of a policy as it was written, without what Postgres adds: to compare two.
create or replace function core.bare_condition(condition text) returns text
language sql immutable
as $$
  select replace(replace(lower(translate(condition, E'() \n', '')), '::text', ''), 'asorganization_id', '')
$$;

-- Deviations from these privileges, each with the statement that corrects it. `stops_requests`: without it, requests fail or see nothing.
create or replace function core.missing_privileges()
returns table (subject text, missing text, statement text, stops_requests boolean)
language sql stable
as $$
  with api as (
    select to_regrole('rail_api')::oid as id
  ),
  allowed as materialized (
    select p.* from core.api_privileges() p
  ),
  relation as materialized (
    select r.*, format('%I = current_setting(''rail.organization_id'', true)', r.organization_column) as own_rows
    from core.tenant_relations() r
  ),
  -- Nobody logs in as these, and what they may do is here alone.
  role as materialized (
    select r.* from pg_roles r where r.rolname in ('rail_api', 'rail_partner', 'rail_data', 'rail_data_reader')
  )
  select r.rolname::text, format('it has %s', upper(a.names)), format('alter role %I no%s', r.rolname, replace(a.names, ' ', ' no')), false
  from role r
  cross join lateral (
    select concat_ws(
      ' ', case when r.rolsuper then 'superuser' end, case when r.rolbypassrls then 'bypassrls' end,
      case when r.rolcreaterole then 'createrole' end, case when r.rolcreatedb then 'createdb' end,
      case when r.rolreplication then 'replication' end, case when r.rolcanlogin then 'login' end
    ) as names
  ) a
  where a.names <> ''

  union all
  select r.rolname::text, format('it is a member of %I', m.roleid::regrole), format('revoke %s from %I', m.roleid::regrole, r.rolname), false
  from role r
  join pg_auth_members m on m.member = r.oid
  where r.rolname <> 'rail_partner' or m.roleid is distinct from to_regrole('rail_api')::oid

  union all
  select n.nspname::text, format('%s has CREATE', grantee.name), format('revoke create on schema %I from %s', n.nspname, grantee.name), false
  from pg_namespace n
  cross join aclexplode(n.nspacl) as has
  cross join lateral (select case when has.grantee = 0 then 'public' else has.grantee::regrole::text end as name) as grantee
  where n.nspname in (select core.own_schemas()) and has.privilege_type = 'CREATE' and grantee.name in ('public', 'rail_api', 'rail_partner')

  union all
  select r.name, format('it has the policy %I, which is not of this service', p.polname), format('drop policy %I on %s', p.polname, r.name), false
  from relation r
  join pg_policy p on p.polrelid = r.id
  where p.polpermissive and p.polname not in ('own_organization', 'data_of_organization')
    and p.polroles && (select array_agg(role.oid) || 0::oid from role)

  union all
  select 'rail_api', format('%I cannot become the role rail_api', current_user), format('grant rail_api to %I', current_user), true
  from api
  -- Since Postgres 16 a membership may lack SET ROLE.
  where pg_has_role(api.id, case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end) is not true

  union all
  select
    r.name, format('it belongs to %I, and %I is subject to its row-level security', pg_get_userbyid(r.owner), current_user),
    format('alter table %s owner to %I', r.name, current_user), true
  from relation r
  where not pg_has_role(r.owner, 'USAGE')
    and not (select u.rolbypassrls from pg_roles u where u.rolname = current_user)

  union all
  select r.name, 'row-level security is off', format('alter table %s enable row level security', r.name), false
  from relation r
  where r.kind <> 'v' and not r.is_protected

  union all
  select r.name, 'the view reads as its owner', format('alter view %s set (security_invoker = true)', r.name), false
  from relation r
  where r.kind = 'v' and not r.is_protected

  union all
  select
    r.name, 'it has no policy for the role rail_api',
    format('drop policy if exists own_organization on %s; ', r.name)
      || format('create policy own_organization on %s to rail_api using (%s) with check (%s)', r.name, r.own_rows, r.own_rows),
    true
  from relation r
  cross join api
  where r.kind <> 'v' and not r.is_partition
    and not exists (
      select from pg_policy p where p.polrelid = r.id and p.polname = 'own_organization' and api.id = any (p.polroles)
    )

  union all
  -- Reading a condition waits for whoever locks the table, so nothing that stops requests depends on it.
  select
    r.name, 'its policy for the role rail_api is another one',
    format('alter policy own_organization on %s to rail_api using (%s) with check (%s)', r.name, r.own_rows, r.own_rows),
    false
  from relation r
  cross join api
  join pg_policy p on p.polrelid = r.id and p.polname = 'own_organization' and api.id = any (p.polroles)
  cross join core.bare_condition(r.own_rows) as condition
  where p.polroles <> array[api.id]
    or core.bare_condition(pg_get_expr(p.polqual, p.polrelid)) is distinct from condition
    or core.bare_condition(pg_get_expr(p.polwithcheck, p.polrelid)) is distinct from condition

  union all
  select n.nspname, 'the role rail_api lacks USAGE', format('grant usage on schema %I to rail_api', n.nspname), true
  from pg_namespace n
  cross join api
  where n.nspname in (select core.own_schemas())
    and has_schema_privilege(api.id, n.oid, 'usage') is not true

  union all
  select
    a.name, format('the role rail_api lacks %s', upper(array_to_string(a.privileges, ', '))),
    format(
      'grant %s%s on %s%s to rail_api',
      array_to_string(a.privileges, ', '), ' (' || array_to_string(a.columns, ', ') || ')',
      case when a.kind = 'S' then 'sequence ' else '' end, a.name
    ),
    true
  from allowed a
  cross join api
  where exists (
    select
    from unnest(a.privileges) as privilege
    left join unnest(a.columns) as column_name on true
    where case
        when a.kind = 'S' then has_sequence_privilege(api.id, a.id, privilege)
        when a.columns is null then has_table_privilege(api.id, a.id, privilege)
        else has_column_privilege(api.id, a.id, column_name, privilege)
      end is not true
  )

  union all
  select
    format('%I.%I', n.nspname, c.relname), format('the role rail_api has %s', string_agg(has.privilege_type, ', ')),
    format(
      'revoke %s on %s%I.%I from rail_api',
      string_agg(has.privilege_type, ', '), case when c.relkind = 'S' then 'sequence ' else '' end, n.nspname, c.relname
    ),
    false
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  cross join api
  cross join aclexplode(c.relacl) as has
  where n.nspname in (select core.own_schemas()) and has.grantee = api.id
    and not exists (
      select from allowed a where a.id = c.oid and a.columns is null and lower(has.privilege_type) = any (a.privileges)
    )
  group by n.nspname, c.relname, c.relkind

  union all
  select 'rail_partner', 'it is no member of rail_api', 'grant rail_api to rail_partner', true
  from api
  where pg_has_role(to_regrole('rail_partner')::oid, api.id, 'USAGE') is not true

  union all
  select 'rail_partner', format('%I cannot become the role rail_partner', current_user), format('grant rail_partner to %I', current_user), true
  from api
  where pg_has_role(
      to_regrole('rail_partner')::oid,
      case when current_setting('server_version_num')::integer < 160000 then 'MEMBER' else 'SET' end
    ) is not true

  union all
  select
    r.name, format('it has no policy for %s by the role rail_partner, or another one', upper(w.command)),
    coalesce(
      (
        select string_agg(format('drop policy %I on %s; ', p.polname, r.name), '')
        from pg_policy p
        where p.polrelid = r.id and starts_with(p.polname, 'partner_' || w.command)
      ),
      ''
    )
      || format('create policy %I on %s as restrictive for %s to rail_partner ', w.policy, r.name, w.command)
      || format(case when w.command = 'insert' then 'with check (%s)' else 'using (%s)' end, w.condition),
    true
  from relation r
  cross join lateral core.partner_policies(r.id, r.name) w
  where r.kind <> 'v' and not r.is_partition
    and not exists (
      select
      from pg_policy p
      where p.polrelid = r.id and p.polname = w.policy and not p.polpermissive
        and to_regrole('rail_partner')::oid = any (p.polroles)
    )

  union all
  select
    r.name, format('its policy for %s by the role rail_partner is another one', upper(w.command)),
    format('alter policy %I on %s to rail_partner ', p.polname, r.name)
      || format(case when w.command = 'insert' then 'with check (%s)' else 'using (%s)' end, w.condition),
    false
  from relation r
  cross join lateral core.partner_policies(r.id, r.name) w
  join pg_policy p on p.polrelid = r.id and p.polname = w.policy
  where core.bare_condition(pg_get_expr(coalesce(p.polqual, p.polwithcheck), p.polrelid)) is distinct from core.bare_condition(w.condition)

  union all
  -- In the schemas of products it is the rule: what runs as its owner there is for the API, unless a trigger calls it.
  select f.id::text, 'the role rail_api may not call it', format('grant execute on function %s to rail_api', f.id), true
  from (
    values ('core.enqueue(json, boolean)'::regprocedure), ('core.hold()'), ('core.rotate_key(text, bytea, timestamptz)')

    union all
    select p.oid::regprocedure
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in (select core.own_schemas()) and n.nspname not in ('core', 'data')
      and p.prosecdef and p.prorettype <> 'trigger'::regtype
  ) as f (id)
  cross join api
  where has_function_privilege(api.id, f.id, 'execute') is not true

  union all
  select p.oid::regprocedure::text, 'it runs as its owner, and everybody may call it',
    format('revoke execute on function %s from public', p.oid::regprocedure), false
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  where n.nspname in (select core.own_schemas()) and p.prosecdef
    and exists (
      select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as has where has.grantee = 0
    )
$$;
comment on function core.missing_privileges() is
  'What the role rail_api lacks or has too much of, tables of organizations without protection, and what sets it right; none after a migration.';
