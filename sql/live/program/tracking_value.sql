-- The one space of handles, former handles and link values, under each of the program's url_params. Letter case is ignored, as for a handle that is clicked.
create or replace view program.tracking_value with (security_invoker = true) as
with program_param as not materialized (
  select g.organization_id, g.id as program_id, unnest(g.url_params) as param
  from program.program g
)
select u.organization_id, u.program_id, u.param, p.handle as value, p.id as partner_id, null::text collate "C" as link_id
from program_param u
join program.partner p on p.organization_id = u.organization_id and p.program_id = u.program_id and p.deleted_at is null
union all
select u.organization_id, u.program_id, u.param, a.handle, a.partner_id, null
from program_param u
join program.handle_alias a on a.organization_id = u.organization_id and a.program_id = u.program_id and a.expires_at > now()
join program.partner p on p.organization_id = a.organization_id and p.id = a.partner_id and p.deleted_at is null
union all
select l.organization_id, l.program_id, l.param, l.value_key, l.partner_id, l.id
from program.link l
join program.program g on g.organization_id = l.organization_id and g.id = l.program_id and l.param = any(g.url_params)
where l.deleted_at is null;
comment on view program.tracking_value is
  'Which partner a value stands for in a program''s url_params: handles, former handles until they expire, and the values of links (link_id). A value has one partner.';

create or replace function program.audit_tracking_values()
returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'a handle or link value has one partner', v.organization_id, coalesce(min(v.link_id), min(v.partner_id)),
    format('%s=%s stands for %s', v.param, v.value, string_agg(distinct v.partner_id, ', '))
  from program.tracking_value v
  group by v.organization_id, v.program_id, v.param, v.value
  having min(v.partner_id) <> max(v.partner_id) and bool_or(v.link_id is null)
$$;
comment on function program.audit_tracking_values() is 'Values that stand for two partners: a clean database gives no row.';
