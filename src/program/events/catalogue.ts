import { z } from 'zod';
import { id, timestamp } from '../../core/values/fields.ts';
import { minor } from '../../core/values/money.ts';
import { eventType } from '../../webhooks/events/catalogue.ts';
import { draftOf } from '../../webhooks/events/event.ts';
import {
  amount_minor,
  application_id,
  commission_id,
  commission_status,
  coupon_id,
  currency,
  customer_id,
  destination_url,
  due_at,
  email,
  group_id,
  handle,
  link_id,
  method,
  partner_id,
  partner_status,
  payout_id,
  payout_status,
  referral_id,
  reviewed_by,
  risk_flag_id,
  rule_id,
  rule_name,
  rule_status,
  sale_id,
  sample,
  text,
  tracked_by,
  url,
} from './fields.ts';

const everything = { omit: [] };

const couponFields = {
  coupon_id,
  partner_id,
  code: text.describe('What customers type.'),
  active: z.boolean().describe('Whether it attributes sales.'),
};
const couponSample = { coupon_id: sample.coupon_id, partner_id: sample.partner_id, code: 'ADA20', active: true };
const payoutMoney = { payout_id, partner_id, amount_minor, currency };
const payoutSample = {
  payout_id: sample.payout_id,
  partner_id: sample.partner_id,
  amount_minor: 198_000,
  currency: 'USD',
};
const flagFields = {
  risk_flag_id,
  partner_id: partner_id.nullable(),
  customer_id: customer_id.nullable(),
  kind: text.describe('What was noticed: see RiskFlag.'),
  severity: text.describe('`low`, `medium` or `high`.'),
};
const flagSample = {
  risk_flag_id: sample.risk_flag_id,
  partner_id: sample.partner_id,
  customer_id: sample.customer_id,
  kind: 'self_referral',
  severity: 'high',
};

const rate = (when: string) =>
  z
    .strictObject({
      rate_type: text.describe('`percent` or `fixed`.'),
      rate_value: z.int().describe("`percent`: basis points. `fixed`: minor units of the program's currency."),
      priority: z.int().describe('The higher one pays.'),
      status: rule_status,
    })
    .describe(when);

/** Every event of the program service: section 6 of the specification, "Catalogue". */
export const catalogue = {
  'affiliate.created': eventType(
    'A partner record exists (portal signup, invite, dashboard, import).',
    { partner_id, email, handle, status: partner_status, group_id },
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
    {
      partner_id,
      status: partner_status,
      reason: text.nullable().describe('Your note, as why the partner is suspended. Null: none.'),
    },
    { partner_id: sample.partner_id, status: 'suspended', reason: 'Paid search on the brand name.' },
  ),
  'affiliate.confirmed': eventType(
    'A partner is approved and active; follows `application.approved` when an application step exists.',
    { partner_id, email, handle, group_id },
    { partner_id: sample.partner_id, email: sample.email, handle: sample.handle, group_id: sample.group_id },
  ),
  'affiliate.deleted': eventType(
    'A partner was deleted; links stop attributing; open commissions are voided separately.',
    { partner_id },
    { partner_id: sample.partner_id },
  ),
  'application.submitted': eventType(
    'An applicant answered the questions.',
    {
      application_id,
      partner_id,
      email,
      handle,
      answers: z.json().describe('What the applicant answered, as it was given.'),
    },
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
      partner_id,
      application_id,
      email,
      handle,
      reviewed_by,
      reason: text.nullable().describe('The note of who approved. Null: none.'),
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
      partner_id,
      application_id,
      email,
      handle,
      reviewed_by,
      reason: text.describe('What the applicant was told.'),
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
    {
      link_id,
      partner_id,
      url,
      param: text.describe('The query parameter that carries the value.'),
      value: text.describe('What the parameter carries.'),
      destination_url,
    },
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
    { link_id, partner_id, url, destination_url },
    {
      link_id: sample.link_id,
      partner_id: sample.partner_id,
      url: 'https://example.com/?ref=ada',
      destination_url: 'https://example.com/',
    },
  ),
  'affiliate_link.deleted': eventType(
    'A link was deleted; clicks no longer attribute.',
    { link_id, partner_id },
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
    { coupon_id, partner_id },
    { coupon_id: sample.coupon_id, partner_id: sample.partner_id },
  ),
  'referral.created': eventType(
    'A new visitor came via a link; repeat visits by the same browser do not fire again.',
    {
      referral_id,
      partner_id,
      link_id: link_id.nullable(),
      landing_url: text.nullable().describe('The address that the visitor arrived at. Null: not known.'),
      tracked_by,
      expires_at: timestamp.describe('Until when a sign-up counts for the partner.'),
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
    {
      referral_id,
      customer_id,
      partner_id,
      email: text.nullable().describe("The customer's. Null: not known."),
      tracked_by,
    },
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
    { referral_id, customer_id, partner_id, sale_id },
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
    {
      referral_id,
      partner_id,
      reason: text.describe(
        '`self_referral`, `reattributed` (another partner has the credit now), `deleted_by_hand`, or what the request said.',
      ),
    },
    { referral_id: sample.referral_id, partner_id: sample.partner_id, reason: 'self_referral' },
    everything,
  ),
  'sale.created': eventType(
    'An attributed charge was recorded; always precedes the `commission.created` it produced.',
    {
      sale_id,
      customer_id: customer_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      is_first_sale: z.boolean().describe("Whether it is the customer's first."),
      external_charge_id: text.describe("The processor's id of the charge."),
      occurred_at: timestamp.describe('When the customer was charged.'),
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
    {
      sale_id,
      partner_id,
      amount_minor,
      currency,
      previous_amount_minor: minor.describe('The amount before, in minor units of the currency.'),
    },
    {
      sale_id: sample.sale_id,
      partner_id: sample.partner_id,
      amount_minor: 8900,
      currency: 'USD',
      previous_amount_minor: 9900,
    },
  ),
  'sale.refunded': eventType(
    'A charge was refunded, in whole or in part; the amount is that of this refund.',
    {
      sale_id,
      customer_id: customer_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      refunded_at: timestamp.describe('When it was refunded.'),
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
    { sale_id, partner_id },
    { sale_id: sample.sale_id, partner_id: sample.partner_id },
  ),
  'commission.created': eventType(
    'A commission was earned; status starts `pending` or `due`. A clawback also has kind `clawback` and a negative amount.',
    {
      commission_id,
      sale_id: sale_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      status: text.describe('`pending`: inside the holding period. `due`: past it.'),
      rule_id: rule_id.nullable(),
      mature_at: timestamp.describe('When the holding period ends.'),
      kind: z.literal('clawback').optional().describe('There on a clawback alone.'),
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
    {
      commission_id,
      partner_id,
      amount_minor,
      currency,
      status: commission_status,
      previous_status: text.describe('The status before; the same where the amount or the note was edited.'),
    },
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
    {
      commission_id,
      partner_id,
      payout_id,
      amount_minor,
      currency,
      paid_at: timestamp.describe('When its payout settled.'),
    },
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
    {
      commission_id,
      sale_id: sale_id.nullable(),
      partner_id,
      amount_minor,
      currency,
      reason: text.describe(
        '`sale_refunded`, `sale_corrected`, `partner_deleted`, `voided_by_hand`, or what the request said.',
      ),
    },
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
    { commission_id, partner_id },
    { commission_id: sample.commission_id, partner_id: sample.partner_id },
    everything,
  ),
  'payout.created': eventType(
    'A payout was generated in a batch; nothing is sent yet.',
    {
      payout_id,
      batch_id: id('batch'),
      partner_id,
      amount_minor,
      currency,
      status: payout_status,
      due_at,
    },
    { ...payoutSample, batch_id: sample.batch_id, status: 'pending', due_at: sample.later },
    everything,
  ),
  'payout.updated': eventType(
    "A payout's status changed other than to paid or failed.",
    { payout_id, partner_id, status: payout_status, previous_status: text.describe('The status before.') },
    { payout_id: sample.payout_id, partner_id: sample.partner_id, status: 'processing', previous_status: 'pending' },
    everything,
  ),
  'payout.due': eventType(
    'Money is owed now: the batch is ready, and the amount above the minimum.',
    { ...payoutMoney, due_at },
    { ...payoutSample, due_at: sample.later },
    everything,
  ),
  'payout.paid': eventType(
    'Settlement was confirmed by the rail, or the payout was marked paid by hand.',
    {
      ...payoutMoney,
      method,
      external_id: text.nullable().describe("The rail's id of the payment. Null: it has none."),
      paid_at: timestamp.describe('When it was settled.'),
    },
    { ...payoutSample, method: 'bank_transfer', external_id: 'tr_4471', paid_at: sample.later },
    everything,
  ),
  'payout.failed': eventType(
    'The rail rejected or returned a payout.',
    {
      ...payoutMoney,
      method,
      error_code: text
        .nullable()
        .describe(
          '`recipient_invalid`, `recipient_unclaimed`, `account_closed`, `returned`, `compliance_hold`, `limit_exceeded`, `insufficient_funds`, `currency_not_supported`, `provider_rejected` or `provider_unavailable`. Null: not known.',
        ),
      error_message: text.nullable().describe('The same in words. Null: not known.'),
    },
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
    {
      ...payoutMoney,
      payout_id: payout_id.nullable(),
      reason: text.describe(
        '`no_payout_method`, `missing_tax_form`, `partner_suspended`, `below_minimum` or `negative_balance`.',
      ),
      reason_text: text.describe('The same in words.'),
    },
    { ...payoutSample, reason: 'no_payout_method', reason_text: 'The partner has not chosen how to be paid.' },
    everything,
  ),
  'payout.deleted': eventType(
    'A pending payout was deleted; its commissions return to `due`.',
    { payout_id, partner_id },
    { payout_id: sample.payout_id, partner_id: sample.partner_id },
    everything,
  ),
  'risk_flag.created': eventType(
    'A monitoring rule raised a flag.',
    {
      ...flagFields,
      evidence: z.record(z.string(), z.json()).describe('What was noticed; the keys depend on the kind.'),
    },
    { ...flagSample, evidence: { matched: 'email' } },
  ),
  'risk_flag.resolved': eventType(
    'A person closed the flag; a note is required to close.',
    {
      ...flagFields,
      status: text.describe('`confirmed` or `dismissed`.'),
      note: text.describe('What the person wrote who closed it.'),
      resolved_by: text.nullable().describe('A user (`usr_…`), or the API key (`key_…`) that closed it.'),
    },
    { ...flagSample, status: 'dismissed', note: 'Two people of one household.', resolved_by: sample.user_id },
  ),
  'customer.enrolled_as_partner': eventType(
    "A paying customer became a partner on the first sale, when the program's auto-enrol switch is on; `affiliate.created` for the same partner precedes it.",
    {
      customer_id,
      partner_id,
      handle,
      email,
      group_id,
      source: text.describe('What enrolled the customer: `auto_enrol`.'),
    },
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
    { rule_id, name: rule_name, before: rate('What it paid.'), after: rate('What it pays now.') },
    {
      rule_id: sample.rule_id,
      name: 'Standard',
      before: { rate_type: 'percent', rate_value: 2000, priority: 0, status: 'active' },
      after: { rate_type: 'percent', rate_value: 2500, priority: 0, status: 'active' },
    },
  ),
  'rule.deleted': eventType(
    'A rule was removed; if it was the last applicable rule the next renewal earns nothing.',
    { rule_id, name: rule_name },
    { rule_id: sample.rule_id, name: 'Standard' },
  ),
  'rule.status_changed': eventType(
    'A rule was switched on or off.',
    { rule_id, name: rule_name, status: rule_status },
    { rule_id: sample.rule_id, name: 'Standard', status: 'inactive' },
  ),
};

/** An event of the program service, ready for `tx.emit`. */
export const event = draftOf(catalogue);
