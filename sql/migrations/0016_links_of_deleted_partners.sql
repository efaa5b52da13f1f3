-- A deleted partner's links are deleted with the partner: of those from before, the values are free now too.
update program.link t set deleted_at = p.deleted_at, updated_at = p.deleted_at
from program.partner p
where p.organization_id = t.organization_id and p.id = t.partner_id and p.deleted_at is not null and t.deleted_at is null;
