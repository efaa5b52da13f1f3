-- A bank can execute a payment twice: its bookings are told apart by their references.
alter table program.payout_attempt add column bookings jsonb;
comment on column program.payout_attempt.bookings is 'What the bank has booked of it: the references of debits and returns, and the clawbacks of what it executed more than twice. Null: nothing is known.';
comment on column program.payout_attempt.excess_commission_id is 'The clawback of what this attempt paid beyond the payout: all of it, or where it settled the payout, what the bank executed a second time.';
