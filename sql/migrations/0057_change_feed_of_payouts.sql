-- The change feed gives payouts and their batches too. Both tables are new: nothing waits for their indexes.
call core.follow_changes('program.payout');
call core.follow_changes('program.payout_batch');
create index payout_by_change on program.payout (organization_id, changed_in) where changed_in is not null;
create index payout_batch_by_change on program.payout_batch (organization_id, changed_in) where changed_in is not null;
