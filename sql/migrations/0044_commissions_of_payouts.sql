-- Runs outside a transaction. The commissions of a payout: the index of before has the condition that they are not deleted, which nobody who
-- asks for them repeats, since a constraint holds it.

create index concurrently if not exists commission_in_payout on program.commission (organization_id, payout_id, id) include (program_id)
  where payout_id is not null;

drop index concurrently if exists program.commission_by_payout;
