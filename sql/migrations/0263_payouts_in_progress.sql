-- Runs outside a transaction. Payouts that a worker is still changing: a scheduled task looks for those whose job has failed for good.
create index concurrently if not exists payout_in_progress on program.payout (id) where in_progress is not null;
