-- What was decided by hand about a sale's commissions outlives the next refund or correction. Of what was edited before, the amount that the
-- rate came to is not known: a commission counts as edited to its present amount, any other as computed.
alter table program.commission
  add column edited_total_minor bigint,
  add column edited_base_minor bigint,
  add column computed_minor bigint;
comment on column program.commission.edited_total_minor is
  'What the sale''s commissions of the partner came to when this one was edited by hand: scaled by what is left of the base from then on.';
comment on column program.commission.edited_base_minor is 'What was left of the sale''s base when the commission was edited by hand.';
comment on column program.commission.computed_minor is
  'What a correction of a sale (a clawback or a bonus) came to before it was edited by hand. Null: it was not edited.';
comment on column program.commission.edited_by_hand is
  'Its amount was set, or it was voided, rejected or deleted, by hand: refunds and corrections keep to that.';
