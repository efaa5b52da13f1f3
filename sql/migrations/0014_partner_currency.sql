-- A partner carries the program's currency, which never changes: looked up for each row, it was a fifth of what a page of sales with their
-- partners cost.

alter table program.partner add column currency text collate "C";
comment on column program.partner.currency is 'The program''s, which never changes: every amount on the partner is in it.';

update program.partner t set currency = p.currency
from program.program p
where p.organization_id = t.organization_id and p.id = t.program_id;

alter table program.partner alter column currency set not null;

create function program.partner_currency() returns trigger
language plpgsql
as $$
begin
  select p.currency into new.currency from program.program p where p.organization_id = new.organization_id and p.id = new.program_id;
  return new;
end
$$;
create trigger partner_currency before insert on program.partner for each row execute function program.partner_currency();
