-- Runs outside a transaction. The payouts of a batch that were to be sent and could not be: batches show how many, by reason.
create index concurrently if not exists payout_held on program.payout (organization_id, batch_id, held_reason)
  where held_reason is not null and status = 'pending' and deleted_at is null;
