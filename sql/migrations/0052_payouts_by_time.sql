-- Runs outside a transaction: payouts are created while the index is built.
-- What the report of payouts reads, and their list by time.

create index concurrently if not exists payout_by_created_at on program.payout (organization_id, program_id, created_at)
  where deleted_at is null;
