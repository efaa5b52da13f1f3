-- A custom domain is one program's, over all organizations. Of programs that shared one before, the oldest has it; the others keep it, marked,
-- until they change it: the audit lists them.
alter table program.program add column custom_domain_shared boolean not null default false;
comment on column program.program.custom_domain_shared is 'An older program had the same custom_domain before it had to be unique.';

update program.program p
set custom_domain_shared = true
from (
  select g.organization_id, g.id, row_number() over (partition by lower(g.custom_domain) order by g.id) as nth
  from program.program g
  where g.custom_domain is not null
) as o
where o.organization_id = p.organization_id and o.id = p.id and o.nth > 1;

create unique index program_custom_domain_unique on program.program (lower(custom_domain)) where not custom_domain_shared;
