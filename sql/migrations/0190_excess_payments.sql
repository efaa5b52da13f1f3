-- Runs outside a transaction: attempts are written while the index is built.
-- The few attempts that paid more than was owed, for data.reconciliation.

create index concurrently if not exists payout_attempt_of_excess on program.payout_attempt (organization_id, program_id)
  where excess_commission_id is not null;
