-- Runs outside a transaction: visitors are recorded while the index is built.
-- Values of links are unique in the program under each parameter, letter case ignored. Of those that are not, the oldest has the value; the
-- others keep theirs, marked, and are found by its exact form: the audit lists them.

update program.link l
set value_shared = true
from (
  select t.organization_id, t.id,
    row_number() over (partition by t.organization_id, t.program_id, t.param, t.value_key order by t.value_shared, t.id) as nth
  from program.link t
  where t.deleted_at is null
) as o
where o.organization_id = l.organization_id and o.id = l.id and o.nth > 1 and not l.value_shared;

do $$
declare
  shared bigint := (select count(*) from program.link t where t.value_shared and t.deleted_at is null);
begin
  if shared > 0 then
    raise warning '% links have the value of an older link in other letter case. They keep working by their exact value. ''rail audit'' lists them.', shared;
  end if;
end
$$;

create unique index concurrently if not exists link_value_key_unique on program.link (organization_id, program_id, param, value_key)
  where deleted_at is null and not value_shared;
