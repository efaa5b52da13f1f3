-- What was requested of a payout with many commissions, and a worker is still doing.
alter table program.payout
  add column in_progress text collate "C" constraint payout_in_progress_known check (in_progress in ('mark_paid', 'mark_returned', 'delete'));
