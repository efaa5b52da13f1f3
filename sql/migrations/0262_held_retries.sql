-- Runs outside a transaction. What was to be sent, or sent again, and could not be: batches show how many, by reason.
create index concurrently if not exists payout_not_sent on program.payout (organization_id, batch_id, held_reason)
  where held_reason is not null and status in ('pending', 'failed') and deleted_at is null;

drop index concurrently if exists program.payout_held;
