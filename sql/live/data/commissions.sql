-- Views of commissions.

create or replace view data.commission with (security_barrier = true) as
select
  c.id,
  c.program_id,
  c.partner_id,
  c.customer_id,
  c.sale_id,
  c.rule_id,
  l.payout_id,
  c.kind,
  c.clawback_of,
  c.currency,
  c.amount_minor,
  case when c.status in ('voided', 'rejected') then 0 else c.amount_minor end as counted_minor,
  c.base_amount_minor,
  c.rate_type,
  c.rate_value,
  c.edited_by_hand as is_edited_by_hand,
  c.status,
  c.mature_at,
  c.approved_at,
  c.paid_at,
  c.voided_at,
  case when (select data.sees_personal()) then c.void_reason else data.without_emails(c.void_reason) end as void_reason,
  case when (select data.sees_personal()) then c.note end as note,
  c.created_at,
  c.updated_at,
  case when (select data.sees_personal()) then c.hold_reason else data.without_emails(c.hold_reason) end as hold_reason,
  c.held_at
from program.commission c
left join program.payout_commission l
  on l.organization_id = c.organization_id and l.payout_id = c.payout_id and l.commission_id = c.id
where c.organization_id = (select data.organization_id())
  and c.deleted_at is null;
comment on view data.commission is 'What partners earned by sales or as bonuses, or have to return (clawbacks, with negative amounts), as it stands now. Its history is in data.commission_entry.';
comment on column data.commission.id is 'The commission (com_).';
comment on column data.commission.program_id is 'The program (prg_).';
comment on column data.commission.partner_id is 'The partner (part_).';
comment on column data.commission.customer_id is 'The customer of the sale (cus_). Null: a bonus, or a sale without a customer.';
comment on column data.commission.sale_id is 'The sale that earned it (sale_). Null: a bonus.';
comment on column data.commission.rule_id is 'The rule that applied (flw_). Null: a link''s own rate, or a bonus.';
comment on column data.commission.payout_id is 'The payout that includes it (pyt_). Null: none.';
comment on column data.commission.kind is 'sale, bonus or clawback.';
comment on column data.commission.clawback_of is 'The commission that this clawback, or this bonus from a correction, belongs to (com_). Null: none.';
comment on column data.commission.currency is 'ISO 4217 code of the currency of the amounts of this row.';
comment on column data.commission.amount_minor is 'The amount, in minor units. Voided and rejected ones keep theirs: add up counted_minor instead.';
comment on column data.commission.counted_minor is 'What it counts, in minor units: the amount, or 0 when it is voided or rejected.';
comment on column data.commission.base_amount_minor is 'The amount to which the rate was applied, in minor units of the currency of the sale. Null: a bonus.';
comment on column data.commission.rate_type is 'percent or fixed: the rate that it was computed with. Null: a bonus.';
comment on column data.commission.rate_value is 'The rate that it was computed with: basis points for percent, minor units for fixed. Null: a bonus.';
comment on column data.commission.is_edited_by_hand is 'Whether its amount was set, or it was voided or rejected, by hand.';
comment on column data.commission.status is 'pending, approved, due, on_hold, paid, voided or rejected.';
comment on column data.commission.mature_at is 'When the holding period ends.';
comment on column data.commission.approved_at is 'When it was approved by hand. Null: not approved by hand.';
comment on column data.commission.paid_at is 'When its payout settled. Null: not paid.';
comment on column data.commission.voided_at is 'When it was voided. Null: not voided.';
comment on column data.commission.void_reason is 'Why it was voided, such as sale_refunded. Null: not voided. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.commission.hold_reason is 'Why it is on hold: dispute, or the reason that you gave. Null: it is not on hold. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.commission.held_at is 'When it was put on hold. Null: it is not on hold.';
comment on column data.commission.note is 'Your note. Personal: null unless the login was made with --personal-data.';
comment on column data.commission.created_at is 'When it was recorded.';
comment on column data.commission.updated_at is 'When it last changed.';
