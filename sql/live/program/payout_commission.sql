-- The commissions of a payout, as rows of program.payout_commission, instead of an index of program.commission.payout_id. With such an index a
-- commission that enters a payout would be written anew into all of them.

create or replace function program.note_commissions_of_payouts() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'INSERT' then
    insert into program.payout_commission (organization_id, payout_id, commission_id)
    select a.organization_id, a.payout_id, a.id
    from after a
    where a.payout_id is not null;
    return null;
  end if;
  if tg_op = 'DELETE' then
    delete from program.payout_commission l
    using before b
    where b.payout_id is not null and l.organization_id = b.organization_id and l.payout_id = b.payout_id and l.commission_id = b.id;
    return null;
  end if;
  -- A batch: nothing was in a payout before, and all comes in the order of the payouts.
  if not exists (select from before b where b.payout_id is not null) then
    insert into program.payout_commission (organization_id, payout_id, commission_id)
    select a.organization_id, a.payout_id, a.id
    from after a
    where a.payout_id is not null;
  else
    -- Set difference, and no join: transition tables have no statistics, and of two small ones Postgres reads one for each row of the other.
    delete from program.payout_commission l
    using (
      select b.organization_id, b.payout_id, b.id from before b where b.payout_id is not null
      except
      select a.organization_id, a.payout_id, a.id from after a
    ) as gone
    where l.organization_id = gone.organization_id and l.payout_id = gone.payout_id and l.commission_id = gone.id;
    insert into program.payout_commission (organization_id, payout_id, commission_id)
    select a.organization_id, a.payout_id, a.id from after a where a.payout_id is not null
    except
    select b.organization_id, b.payout_id, b.id from before b;
  end if;
  return null;
end
$$;
create or replace trigger by_payout_deleted after delete on program.commission referencing old table as before
for each statement execute function program.note_commissions_of_payouts();
create or replace trigger by_payout_inserted after insert on program.commission referencing new table as after
for each statement execute function program.note_commissions_of_payouts();
create or replace trigger by_payout_updated after update on program.commission referencing old table as before new table as after
for each statement execute function program.note_commissions_of_payouts();
