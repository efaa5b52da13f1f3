-- Invariants of tenancy: one row for each violation. In plpgsql, because core.missing_privileges() is made after it.
create or replace function core.audit()
returns table (invariant text, organization_id text, subject_id text, detail text)
language plpgsql stable
as $$
begin
  return query
    select 'every table of an organization is protected by row-level security', '', m.subject, format('%s: run npx --no rail migrate', m.missing)
    from core.missing_privileges() m
    where m.statement like 'alter %'

    union all
    select 'the API''s role may do what it must, and no more', '', m.subject, format('%s: run npx --no rail migrate', m.missing)
    from core.missing_privileges() m
    where m.statement not like 'alter %';
end
$$;
comment on function core.audit() is 'The invariants of tenancy; a clean database gives no row.';
