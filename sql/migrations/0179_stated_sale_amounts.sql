-- A statement that was sent shows what its sales came to then, also where a sale is corrected afterwards.
alter table program.payout_commission add column sale_amount_minor bigint;
comment on column program.payout_commission.sale_amount_minor is
  'What the sale came to when the payout was sent, where it was corrected since. Null: what it comes to now.';
