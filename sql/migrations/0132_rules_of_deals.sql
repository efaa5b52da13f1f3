-- Which rules were made by activations of deals: known also once the deal was erased with its prospect.

alter table program.rule add column of_activation boolean not null default false;
comment on column program.rule.of_activation is 'Made by the activation of a deal; the next one of the partner deactivates it.';

update program.rule r set of_activation = true
from recruitment.deal d
where d.organization_id = r.organization_id and d.rule_id = r.id;
