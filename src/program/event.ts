import { z } from 'zod';
import { eventType } from '../webhooks/catalogue.ts';
import { draftOf } from '../webhooks/event.ts';

const text = z.string();
const nullableText = text.nullable();
const minor = z.int();
const time = z.iso.datetime();
const everything = { omit: [] };

const sample = {
  partner_id: 'sample_part_01kap3b6n8f2v9w4x7y0z1a2b3',
  customer_id: 'sample_cus_01kap3b6n8f2v9w4x7y0z1a2b4',
  referral_id: 'sample_ref_01kap3b6n8f2v9w4x7y0z1a2b5',
  link_id: 'sample_lnk_01kap3b6n8f2v9w4x7y0z1a2b6',
  sale_id: 'sample_sale_01kap3b6n8f2v9w4x7y0z1a2b7',
  commission_id: 'sample_com_01kap3b6n8f2v9w4x7y0z1a2b8',
  rule_id: 'sample_flw_01kap3b6n8f2v9w4x7y0z1a2b9',
  group_id: 'sample_grp_01kap3b6n8f2v9w4x7y0z1a2c0',
  application_id: 'sample_app_01kap3b6n8f2v9w4x7y0z1a2c1',
  coupon_id: 'sample_cpn_01kap3b6n8f2v9w4x7y0z1a2c2',
  payout_id: 'sample_pyt_01kap3b6n8f2v9w4x7y0z1a2c3',
  batch_id: 'sample_batch_01kap3b6n8f2v9w4x7y0z1a2c4',
  risk_flag_id: 'sample_rsk_01kap3b6n8f2v9w4x7y0z1a2c5',
  user_id: 'sample_usr_01kap3b6n8f2v9w4x7y0z1a2c6',
  email: 'ada@example.com',
  handle: 'ada',
  at: '2026-11-21T09:30:00.000Z',
  later: '2026-12-21T09:30:00.000Z',
};

const couponFields = { coupon_id: text, partner_id: text, code: text, active: z.boolean() };
const couponSample = { coupon_id: sample.coupon_id, partner_id: sample.partner_id, code: 'ADA20', active: true };
const payoutMoney = { payout_id: text, partner_id: text, amount_minor: minor, currency: text };
const payoutSample = {
  payout_id: sample.payout_id,
  partner_id: sample.partner_id,
  amount_minor: 198_000,
  currency: 'USD',
};
const flagFields = {
  risk_flag_id: text,
  partner_id: nullableText,
  customer_id: nullableText,
  kind: text,
  severity: text,
};
const flagSample = {
  risk_flag_id: sample.risk_flag_id,
  partner_id: sample.partner_id,
  customer_id: sample.customer_id,
  kind: 'self_referral',
  severity: 'high',
};

const rate = z.strictObject({ rate_type: text, rate_value: z.int(), priority: z.int(), status: text });

/** Every event of the program service: section 6 of the specification, "Catalogue". */
export const catalogue = {
  'affiliate.created': eventType(
    'A partner record exists (portal signup, invite, dashboard, import).',
    { partner_id: text, email: text, handle: text, status: text, group_id: nullableText },
    {
      partner_id: sample.partner_id,
      email: sample.email,
      handle: sample.handle,
      status: 'active',
      group_id: sample.group_id,
    },
  ),
  'affiliate.updated': eventType(
    'Profile, group or status changed; status is the new value, reason the optional note.',
    { partner_id: text, status: text, reason: nullableText },
    { partner_id: sample.partner_id, status: 'suspended', reason: 'Paid search on the brand name.' },
  ),
  'affiliate.confirmed': eventType(
    'A partner is approved and active; follows `application.approved` when an application step exists.',
    { partner_id: text, email: text, handle: text, group_id: nullableText },
    { partner_id: sample.partner_id, email: sample.email, handle: sample.handle, group_id: sample.group_id },
  ),
  'affiliate.deleted': eventType(
    'A partner was deleted; links stop attributing; open commissions are voided separately.',
    { partner_id: text },
    { partner_id: sample.partner_id },
  ),
  'application.submitted': eventType(
    'An applicant answered the questions.',
    { application_id: text, partner_id: text, email: text, handle: text, answers: z.json() },
    {
      application_id: sample.application_id,
      partner_id: sample.partner_id,
      email: sample.email,
      handle: sample.handle,
      answers: { audience: '12,000 readers of a newsletter on databases' },
    },
  ),
  'application.approved': eventType(
    'Approved; `affiliate.confirmed` follows at once.',
    {
      partner_id: text,
      application_id: text,
      email: text,
      handle: text,
      reviewed_by: text,
      reason: nullableText,
    },
    {
      partner_id: sample.partner_id,
      application_id: sample.application_id,
      email: sample.email,
      handle: sample.handle,
      reviewed_by: sample.user_id,
      reason: null,
    },
  ),
  'application.rejected': eventType(
    "Rejected with the service's reason.",
    {
      partner_id: text,
      application_id: text,
      email: text,
      handle: text,
      reviewed_by: text,
      reason: text,
    },
    {
      partner_id: sample.partner_id,
      application_id: sample.application_id,
      email: sample.email,
      handle: sample.handle,
      reviewed_by: sample.user_id,
      reason: 'We work with newsletters alone.',
    },
  ),
  'affiliate_link.created': eventType(
    'A link was created.',
    { link_id: text, partner_id: text, url: text, param: text, value: text, destination_url: text },
    {
      link_id: sample.link_id,
      partner_id: sample.partner_id,
      url: 'https://example.com/pricing?ref=ada',
      param: 'ref',
      value: 'ada',
      destination_url: 'https://example.com/pricing',
    },
  ),
  'affiliate_link.updated': eventType(
    'Destination, label or short slug changed.',
    { link_id: text, partner_id: text, url: text, destination_url: text },
    {
      link_id: sample.link_id,
      partner_id: sample.partner_id,
      url: 'https://example.com/?ref=ada',
      destination_url: 'https://example.com/',
    },
  ),
  'affiliate_link.deleted': eventType(
    'A link was deleted; clicks no longer attribute.',
    { link_id: text, partner_id: text },
    { link_id: sample.link_id, partner_id: sample.partner_id },
  ),
  'affiliate_coupon.created': eventType('A coupon was attached to a partner.', couponFields, couponSample),
  'affiliate_coupon.updated': eventType('The partner or the code mapping changed.', couponFields, couponSample),
  'affiliate_coupon.activated': eventType('A coupon was switched on.', couponFields, couponSample),
  'affiliate_coupon.deactivated': eventType('A coupon was switched off; purchases no longer attribute.', couponFields, {
    ...couponSample,
    active: false,
  }),
  'affiliate_coupon.deleted': eventType(
    'The mapping was removed.',
    { coupon_id: text, partner_id: text },
    { coupon_id: sample.coupon_id, partner_id: sample.partner_id },
  ),
  'referral.created': eventType(
    'A new visitor came via a link; repeat visits by the same browser do not fire again.',
    {
      referral_id: text,
      partner_id: text,
      link_id: nullableText,
      landing_url: nullableText,
      tracked_by: text,
      expires_at: time,
    },
    {
      referral_id: sample.referral_id,
      partner_id: sample.partner_id,
      link_id: sample.link_id,
      landing_url: 'https://example.com/pricing?ref=ada',
      tracked_by: 'link',
      expires_at: sample.later,
    },
    everything,
  ),
  'referral.lead': eventType(
    'The visitor signed up; postbacks receive it without `email`.',
    { referral_id: text, customer_id: text, partner_id: text, email: nullableText, tracked_by: text },
    {
      referral_id: sample.referral_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      email: 'grace@example.com',
      tracked_by: 'link',
    },
    { omit: ['email'] },
  ),
  'referral.converted': eventType(
    'First payment; once per referral, alongside the first `sale.created`.',
    { referral_id: text, customer_id: text, partner_id: text, sale_id: text },
    {
      referral_id: sample.referral_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      sale_id: sample.sale_id,
    },
    everything,
  ),
  'referral.deleted': eventType(
    'The referral was deleted, usually flagged as self-referral or fraud.',
    { referral_id: text, partner_id: text, reason: text },
    { referral_id: sample.referral_id, partner_id: sample.partner_id, reason: 'self_referral' },
    everything,
  ),
  'sale.created': eventType(
    'An attributed charge was recorded; always precedes the `commission.created` it produced.',
    {
      sale_id: text,
      customer_id: nullableText,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      is_first_sale: z.boolean(),
      external_charge_id: text,
      occurred_at: time,
    },
    {
      sale_id: sample.sale_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      amount_minor: 9900,
      currency: 'USD',
      is_first_sale: true,
      external_charge_id: 'ch_3PqT',
      occurred_at: sample.at,
    },
  ),
  'sale.updated': eventType(
    'Amount or attribution was corrected; commissions are recalculated and tell their own events.',
    { sale_id: text, partner_id: text, amount_minor: minor, currency: text, previous_amount_minor: minor },
    {
      sale_id: sample.sale_id,
      partner_id: sample.partner_id,
      amount_minor: 8900,
      currency: 'USD',
      previous_amount_minor: 9900,
    },
  ),
  'sale.refunded': eventType(
    'A charge was refunded, in whole or in part; the amount is that of the refund.',
    {
      sale_id: text,
      customer_id: nullableText,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      refunded_at: time,
    },
    {
      sale_id: sample.sale_id,
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      amount_minor: 9900,
      currency: 'USD',
      refunded_at: sample.later,
    },
  ),
  'sale.deleted': eventType(
    'A sale was deleted outright, for example by an import that was rolled back.',
    { sale_id: text, partner_id: text },
    { sale_id: sample.sale_id, partner_id: sample.partner_id },
  ),
  'commission.created': eventType(
    'A commission was earned; status starts `pending` or `due`. A clawback also has kind `clawback` and a negative amount.',
    {
      commission_id: text,
      sale_id: nullableText,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      status: text,
      rule_id: nullableText,
      mature_at: time,
      kind: z.literal('clawback').optional(),
    },
    {
      commission_id: sample.commission_id,
      sale_id: sample.sale_id,
      partner_id: sample.partner_id,
      amount_minor: 1980,
      currency: 'USD',
      status: 'pending',
      rule_id: sample.rule_id,
      mature_at: sample.later,
    },
    everything,
  ),
  'commission.updated': eventType(
    'A commission matured, was approved or rejected by hand, or was edited.',
    { commission_id: text, partner_id: text, amount_minor: minor, currency: text, status: text, previous_status: text },
    {
      commission_id: sample.commission_id,
      partner_id: sample.partner_id,
      amount_minor: 1980,
      currency: 'USD',
      status: 'due',
      previous_status: 'pending',
    },
    everything,
  ),
  'commission.paid': eventType(
    'A commission left in a settled payout.',
    { commission_id: text, partner_id: text, payout_id: text, amount_minor: minor, currency: text, paid_at: time },
    {
      commission_id: sample.commission_id,
      partner_id: sample.partner_id,
      payout_id: sample.payout_id,
      amount_minor: 1980,
      currency: 'USD',
      paid_at: sample.later,
    },
    everything,
  ),
  'commission.voided': eventType(
    'An unpaid commission was cancelled.',
    { commission_id: text, sale_id: nullableText, partner_id: text, amount_minor: minor, currency: text, reason: text },
    {
      commission_id: sample.commission_id,
      sale_id: sample.sale_id,
      partner_id: sample.partner_id,
      amount_minor: 1980,
      currency: 'USD',
      reason: 'sale_refunded',
    },
    everything,
  ),
  'commission.deleted': eventType(
    'A commission was deleted.',
    { commission_id: text, partner_id: text },
    { commission_id: sample.commission_id, partner_id: sample.partner_id },
    everything,
  ),
  'payout.created': eventType(
    'A payout was generated in a batch; nothing is sent yet.',
    {
      payout_id: text,
      batch_id: text,
      partner_id: text,
      amount_minor: minor,
      currency: text,
      status: text,
      due_at: time,
    },
    { ...payoutSample, batch_id: sample.batch_id, status: 'pending', due_at: sample.later },
    everything,
  ),
  'payout.updated': eventType(
    "A payout's status changed other than to paid or failed.",
    { payout_id: text, partner_id: text, status: text, previous_status: text },
    { payout_id: sample.payout_id, partner_id: sample.partner_id, status: 'processing', previous_status: 'pending' },
    everything,
  ),
  'payout.due': eventType(
    'Money is owed now: the batch is ready, and the amount above the minimum.',
    { ...payoutMoney, due_at: time },
    { ...payoutSample, due_at: sample.later },
    everything,
  ),
  'payout.paid': eventType(
    'Settlement was confirmed by the rail, or the payout was marked paid by hand.',
    { ...payoutMoney, method: nullableText, external_id: nullableText, paid_at: time },
    { ...payoutSample, method: 'bank_transfer', external_id: 'tr_4471', paid_at: sample.later },
    everything,
  ),
  'payout.failed': eventType(
    'The rail rejected or returned a payout.',
    { ...payoutMoney, method: nullableText, error_code: nullableText, error_message: nullableText },
    {
      ...payoutSample,
      method: 'bank_transfer',
      error_code: 'account_closed',
      error_message: 'The account was closed.',
    },
    everything,
  ),
  'payout.not_eligible': eventType(
    'Money is due but cannot be paid: no payout method, a missing tax form, or a balance under the minimum. `reason` is machine-readable.',
    { ...payoutMoney, payout_id: nullableText, reason: text, reason_text: text },
    { ...payoutSample, reason: 'no_payout_method', reason_text: 'The partner has not chosen how to be paid.' },
    everything,
  ),
  'payout.deleted': eventType(
    'A pending payout was deleted; its commissions return to `due`.',
    { payout_id: text, partner_id: text },
    { payout_id: sample.payout_id, partner_id: sample.partner_id },
    everything,
  ),
  'risk_flag.created': eventType(
    'A monitoring rule raised a flag.',
    { ...flagFields, evidence: z.record(z.string(), z.json()) },
    { ...flagSample, evidence: { matched: 'email' } },
  ),
  'risk_flag.resolved': eventType(
    'A person closed the flag; a note is required to close.',
    { ...flagFields, status: text, note: text, resolved_by: nullableText },
    { ...flagSample, status: 'dismissed', note: 'Two people of one household.', resolved_by: sample.user_id },
  ),
  'customer.enrolled_as_partner': eventType(
    "A paying customer became a partner on the first sale, when the program's auto-enrol switch is on; `affiliate.created` for the same partner precedes it.",
    { customer_id: text, partner_id: text, handle: text, email: text, group_id: nullableText, source: text },
    {
      customer_id: sample.customer_id,
      partner_id: sample.partner_id,
      handle: sample.handle,
      email: sample.email,
      group_id: sample.group_id,
      source: 'auto_enrol',
    },
  ),
  'rule.updated': eventType(
    'A rule was edited; it applies to every later payment, renewals included.',
    { rule_id: text, name: text, before: rate, after: rate },
    {
      rule_id: sample.rule_id,
      name: 'Standard',
      before: { rate_type: 'percent', rate_value: 2000, priority: 0, status: 'active' },
      after: { rate_type: 'percent', rate_value: 2500, priority: 0, status: 'active' },
    },
  ),
  'rule.deleted': eventType(
    'A rule was removed; if it was the last applicable rule the next renewal earns nothing.',
    { rule_id: text, name: text },
    { rule_id: sample.rule_id, name: 'Standard' },
  ),
  'rule.status_changed': eventType(
    'A rule was switched on or off.',
    { rule_id: text, name: text, status: text },
    { rule_id: sample.rule_id, name: 'Standard', status: 'inactive' },
  ),
};

/** An event of the program service, ready for `tx.emit`. */
export const event = draftOf(catalogue);
