-- Views of customers, of what they paid and of what was refunded.

create or replace view data.customer with (security_barrier = true) as
select
  c.id,
  c.program_id,
  c.partner_id,
  c.referral_id,
  c.link_id,
  c.coupon_id,
  case when (select data.sees_personal()) then c.processor else data.without_emails(c.processor) end as processor,
  c.external_customer_id,
  c.external_subscription_id,
  case when (select data.sees_personal()) then c.email end as email,
  case when (select data.sees_personal()) then c.name end as name,
  case when (select data.sees_personal()) then c.identifier end as identifier,
  c.status,
  c.tracked_by,
  c.lead_at,
  c.converted_at,
  case when (select data.sees_personal()) then c.metadata end as metadata,
  c.created_at,
  c.updated_at,
  c.verified
from program.customer c
where c.organization_id = (select data.organization_id())
  and c.deleted_at is null;
comment on view data.customer is 'Customers who are attributed to a partner, from sign-up on. Erased customers are left out; their sales remain.';
comment on column data.customer.id is 'The customer (cus_).';
comment on column data.customer.program_id is 'The program (prg_).';
comment on column data.customer.partner_id is 'The partner who earns from the customer''s sales (part_).';
comment on column data.customer.referral_id is 'The referral that led to the sign-up (ref_). Null: none.';
comment on column data.customer.link_id is 'The link that the customer came through (lnk_). Null: none.';
comment on column data.customer.coupon_id is 'The coupon that attributed the customer (cpn_). Null: none.';
comment on column data.customer.processor is 'The program''s processor at the time of sign-up. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.customer.external_customer_id is 'The processor''s customer id. Null: not given.';
comment on column data.customer.external_subscription_id is 'The processor''s subscription id, from the first sale. Null: not given.';
comment on column data.customer.email is 'The email address. Personal: null unless the login was made with --personal-data.';
comment on column data.customer.name is 'The name. Personal: null unless the login was made with --personal-data.';
comment on column data.customer.identifier is 'Your own id of the customer. Personal: null unless the login was made with --personal-data.';
comment on column data.customer.status is 'lead, trial, active, cancelled, refunded or suspended.';
comment on column data.customer.tracked_by is 'link, coupon, manual or api: how the customer was attributed.';
comment on column data.customer.lead_at is 'When the customer signed up.';
comment on column data.customer.converted_at is 'When the customer first paid. Null: not yet.';
comment on column data.customer.metadata is 'Your own data about the customer, as JSON. Personal: null unless the login was made with --personal-data.';
comment on column data.customer.created_at is 'When it was recorded.';
comment on column data.customer.updated_at is 'When it last changed.';
comment on column data.customer.verified is 'False: a browser told of the customer, and no server has vouched for it.';

create or replace view data.sale with (security_barrier = true) as
select
  s.id,
  s.program_id,
  s.partner_id,
  s.customer_id,
  s.link_id,
  s.referral_id,
  s.coupon_id,
  s.external_charge_id,
  s.external_subscription_id,
  s.product_id,
  s.currency,
  s.amount_minor,
  s.tax_minor,
  s.shipping_minor,
  s.fee_minor,
  s.discount_minor,
  s.net_amount_minor,
  s.refunded_minor,
  s.amount_minor - s.refunded_minor as remaining_minor,
  s.status,
  s.is_first_sale,
  s.occurred_at,
  s.refunded_at,
  case when (select data.sees_personal()) then s.metadata end as metadata,
  s.created_at,
  s.updated_at
from program.sale s
where s.organization_id = (select data.organization_id())
  and s.deleted_at is null;
comment on view data.sale is 'Charges, and the partner who is credited with each. Deleted sales are left out.';
comment on column data.sale.id is 'The sale (sale_).';
comment on column data.sale.program_id is 'The program (prg_).';
comment on column data.sale.partner_id is 'The partner who is credited (part_). Null: nobody.';
comment on column data.sale.customer_id is 'The customer who paid (cus_). Null: not known.';
comment on column data.sale.link_id is 'The link that the customer came through (lnk_). Null: none.';
comment on column data.sale.referral_id is 'The referral that the customer came from (ref_). Null: none.';
comment on column data.sale.coupon_id is 'The coupon by which the partner is credited (cpn_). Null: none.';
comment on column data.sale.external_charge_id is 'The processor''s id of the charge, unique in the program: reconcile by it.';
comment on column data.sale.external_subscription_id is 'The processor''s id of the subscription. Null: not given.';
comment on column data.sale.product_id is 'Your id of the product. Null: not given.';
comment on column data.sale.currency is 'ISO 4217 code of the currency of all amounts of this row.';
comment on column data.sale.amount_minor is 'The amount charged, in minor units.';
comment on column data.sale.tax_minor is 'The tax that the amount includes, in minor units.';
comment on column data.sale.shipping_minor is 'The shipping that the amount includes, in minor units.';
comment on column data.sale.fee_minor is 'The processor''s fee that the amount includes, in minor units. 0 if you sent none.';
comment on column data.sale.discount_minor is 'A discount that the amount still includes, in minor units.';
comment on column data.sale.net_amount_minor is 'The amount without tax, shipping, fee and discount, in minor units.';
comment on column data.sale.refunded_minor is 'What was refunded so far, in minor units.';
comment on column data.sale.remaining_minor is 'The amount less what was refunded, in minor units.';
comment on column data.sale.status is 'paid, partially_refunded or refunded.';
comment on column data.sale.is_first_sale is 'Whether it is the customer''s first sale.';
comment on column data.sale.occurred_at is 'When the customer was charged. It may lie before created_at.';
comment on column data.sale.refunded_at is 'When it was last refunded. Null: never.';
comment on column data.sale.metadata is 'Your own data about the sale, as JSON. Personal: null unless the login was made with --personal-data.';
comment on column data.sale.created_at is 'When it was recorded.';
comment on column data.sale.updated_at is 'When it last changed.';

create or replace view data.refund with (security_barrier = true) as
select
  r.id,
  r.program_id,
  r.sale_id,
  s.partner_id,
  r.external_refund_id,
  s.currency,
  r.amount_minor,
  case when (select data.sees_personal()) then r.reason else data.without_emails(r.reason) end as reason,
  case when r.refunded_at is null then r.created_at else r.refunded_at end as refunded_at,
  r.created_at,
  r.updated_at,
  r.reversed_at,
  case when (select data.sees_personal()) then r.reversal_reason else data.without_emails(r.reversal_reason) end as reversal_reason
from program.refund r
left join program.sale s on s.organization_id = r.organization_id and s.id = r.sale_id
where r.organization_id = (select data.organization_id())
  and r.deleted_at is null;
comment on view data.refund is 'Refunds of sales, in whole or in part: one row each. Those of deleted sales are left out. One that is reversed counts nowhere: add up those without reversed_at.';
comment on column data.refund.id is 'The refund (rfd_).';
comment on column data.refund.program_id is 'The program (prg_).';
comment on column data.refund.sale_id is 'The sale (sale_).';
comment on column data.refund.partner_id is 'The partner who is credited with the sale (part_). Null: nobody.';
comment on column data.refund.external_refund_id is 'The processor''s id of the refund, unique in the program: reconcile by it. Null: not given.';
comment on column data.refund.currency is 'ISO 4217 code of the sale''s currency.';
comment on column data.refund.amount_minor is 'What was refunded, in minor units.';
comment on column data.refund.reason is 'The reason, as you sent it. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.refund.refunded_at is 'When the charge was refunded.';
comment on column data.refund.reversed_at is 'When it was reversed. Null: it stands.';
comment on column data.refund.reversal_reason is 'Why it was reversed, as you sent it. Null: not given, or it stands. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.refund.created_at is 'When it was recorded.';
comment on column data.refund.updated_at is 'When it last changed.';

create or replace view data.dispute with (security_barrier = true) as
select
  d.id,
  d.program_id,
  d.sale_id,
  s.partner_id,
  d.external_dispute_id,
  s.currency,
  d.amount_minor,
  case when (select data.sees_personal()) then d.reason else data.without_emails(d.reason) end as reason,
  d.status,
  d.refund_id,
  d.opened_at,
  d.closed_at,
  d.created_at,
  d.updated_at
from program.dispute d
left join program.sale s on s.organization_id = d.organization_id and s.id = d.sale_id
where d.organization_id = (select data.organization_id())
  and d.deleted_at is null;
comment on view data.dispute is 'Charges that customers dispute at their bank: one row for each dispute. Those of deleted sales are left out.';
comment on column data.dispute.id is 'The dispute (dsp_).';
comment on column data.dispute.program_id is 'The program (prg_).';
comment on column data.dispute.sale_id is 'The sale (sale_).';
comment on column data.dispute.partner_id is 'The partner who is credited with the sale (part_). Null: nobody.';
comment on column data.dispute.external_dispute_id is 'The processor''s id of the dispute, unique in the program. Null: not given.';
comment on column data.dispute.currency is 'ISO 4217 code of the sale''s currency.';
comment on column data.dispute.amount_minor is 'What is disputed, in minor units.';
comment on column data.dispute.reason is 'The reason, as you sent it. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.dispute.status is 'open, won or lost.';
comment on column data.dispute.refund_id is 'The refund that took the amount when it was lost (rfd_). Null: none.';
comment on column data.dispute.opened_at is 'When the customer disputed the charge.';
comment on column data.dispute.closed_at is 'When the dispute was decided. Null: it is open.';
comment on column data.dispute.created_at is 'When it was recorded.';
comment on column data.dispute.updated_at is 'When it last changed.';
