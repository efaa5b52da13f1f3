-- A commission that is put into a payout was written into every index of its table, since one of them held the payout. Which commissions a payout
-- holds is kept in a table of its own instead: the commission itself stays in its place, and so do its entries in all indexes.
create table program.payout_commission (
  organization_id text collate "C" not null,
  payout_id text collate "C" not null,
  commission_id text collate "C" not null,
  primary key (organization_id, payout_id, commission_id)
);
comment on table program.payout_commission is
  'program.commission.payout_id by payout, written by triggers of that table: in place of an index of its column.';
call core.protect_tenant_table('program.payout_commission');

-- Triggers run in the order of their names: before the constraint that payouts add up, which reads it. Written out in sql/live/program/payout_commission.sql, which runs behind this file.
create function program.note_commissions_of_payouts() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger by_payout_inserted after insert on program.commission referencing new table as after
for each statement execute function program.note_commissions_of_payouts();
create trigger by_payout_updated after update on program.commission referencing old table as before new table as after
for each statement execute function program.note_commissions_of_payouts();
create trigger by_payout_deleted after delete on program.commission referencing old table as before
for each statement execute function program.note_commissions_of_payouts();

insert into program.payout_commission (organization_id, payout_id, commission_id)
select c.organization_id, c.payout_id, c.id
from program.commission c
where c.payout_id is not null
order by c.organization_id, c.payout_id, c.id;

-- Rows that change in place need room in their page.
alter table program.commission set (fillfactor = 80);
alter table program.payout set (fillfactor = 80);
