-- Invariants of schema data and its logins.
create or replace function data.audit() returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  with login as materialized (
    select l.organization_id, l.role_name, r.oid, r.rolname is not null as is_made,
      exists (
        select from pg_db_role_setting s
        where s.setrole = r.oid and s.setdatabase = 0 and s.setconfig && '{log_min_messages=fatal,log_min_messages=panic}'
      ) as is_kept_from_log,
      r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls as has_attributes
    from core.data_login l
    left join pg_roles r on r.rolname = l.role_name
    where l.revoked_at is null
  )
  select 'views of schema data show the rows of their reader''s organization alone', '', m.subject, m.missing
  from data.missing_privileges() m

  union all
  select 'views of schema data show the rows of their reader''s organization alone', '', 'rail_data',
    'the role can log in, bypasses row-level security, or may change roles'
  from pg_roles r
  where r.rolname = 'rail_data' and (r.rolcanlogin or r.rolsuper or r.rolbypassrls or r.rolcreaterole)

  union all
  select 'views of schema data show the rows of their reader''s organization alone', '', c.oid::regclass::text,
    'it belongs to rail_data, to whom its row-level security does not apply'
  from pg_class c
  join pg_roles r on r.oid = c.relowner
  where r.rolname = 'rail_data' and c.relkind <> 'v'

  union all
  select 'the logins of data teams cannot hold up the service', '', m.subject,
    format('%s: npx --no rail migrate takes it away, or prints the SQL', m.missing)
  from data.missing_protection() m
  where m.nth = 2 and exists (select from login l where l.is_made)

  union all
  select 'the logins of data teams cannot hold up the service', l.organization_id, l.role_name,
    format('it writes to the log of Postgres without limit: alter role %I set log_min_messages = fatal', l.role_name)
  from login l
  where l.is_made and not l.is_kept_from_log

  union all
  select 'the logins of data teams read schema data and nothing else', l.organization_id, l.role_name,
    case
      when l.has_attributes then 'the role has attributes beyond LOGIN'
      when not pg_has_role(l.oid, 'USAGE') then format('%I is no member of it, and cannot end its sessions', current_user)
      else 'the role is a member of other roles than rail_data_reader'
    end
  from login l
  where l.is_made
    and (
      l.has_attributes
      or not pg_has_role(l.oid, 'USAGE')
      or exists (
        select from pg_auth_members m where m.member = l.oid and m.roleid is distinct from to_regrole('rail_data_reader')::oid
      )
    )

  union all
  select 'the logins of data teams read schema data and nothing else', l.organization_id, l.role_name,
    'the role owns something or was granted more than to connect and membership in rail_data_reader'
  from login l
  where l.is_made and exists (
    select from pg_shdepend d
    where d.refclassid = 'pg_authid'::regclass and d.refobjid = l.oid
      and not (d.classid = 'pg_database'::regclass and d.objid = (select o.oid from pg_database o where o.datname = current_database()))
  )

  union all
  select 'the logins of data teams read schema data and nothing else', l.organization_id, l.role_name,
    'the login is revoked, and its role can still log in: run npx --no rail data user revoke again'
  from core.data_login l
  join pg_roles r on r.rolname = l.role_name
  where l.revoked_at is not null and r.rolcanlogin
$$;
