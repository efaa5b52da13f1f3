-- Each organization's sums begin empty.
create or replace function program.begin_fold() returns trigger
language plpgsql
as $$
begin
  insert into program.fold (organization_id) values (new.id);
  return null;
end
$$;
create or replace trigger begin_fold after insert on core.organization for each row execute function program.begin_fold();
