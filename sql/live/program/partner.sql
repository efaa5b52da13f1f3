-- A partner carries the program's currency, which never changes: looked up for each row, it was a fifth of what a page of sales with their
-- partners cost.
create or replace function program.partner_currency() returns trigger
language plpgsql
as $$
begin
  select p.currency into new.currency from program.program p where p.organization_id = new.organization_id and p.id = new.program_id;
  return new;
end
$$;
create or replace trigger partner_currency before insert on program.partner for each row execute function program.partner_currency();
