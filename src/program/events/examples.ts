import type { z } from 'zod';
import { type EventType, eventType } from '../../webhooks/events/catalogue.ts';

/** A type of event as its family declares it: its example is made here. */
interface Declaration {
  doc: string;
  data: z.ZodRawShape;
  postback?: { omit: string[] };
}

/** The postback of a type that a partner receives with all of its fields. */
export const whole = { omit: [] };

/** The types of a family, each with the example that its fields make. */
export const eventTypes = <Declared extends Record<string, Declaration>>(declared: Declared) =>
  Object.fromEntries(
    Object.entries(declared).map(([type, { doc, data, postback }]) => [
      type,
      eventType(doc, data, exampleOf(type, data), postback ?? false),
    ]),
  ) as unknown as { [Type in keyof Declared]: EventType<Declared[Type]['data']> };

/** What a type's fields hold in its example: the type's own value, else its family's, else the field's. */
function exampleOf(type: string, fields: z.ZodRawShape): Record<string, never> {
  const [family = ''] = type.split('.');
  const values = { ...by_field, ...by_family[family], ...by_type[type] };
  return Object.fromEntries(
    Object.keys(fields).flatMap((field) => (field in values ? [[field, values[field] as never]] : [])),
  );
}

type Values = Record<string, unknown>;

const at = '2026-11-21T09:30:00.000Z';
const later = '2026-12-21T09:30:00.000Z';
const user_id = 'sample_usr_01kap3b6n8f2v9w4x7y0z1a2c6';
const standard_rate = { rate_type: 'percent', rate_value: 2000, priority: 0, status: 'active' };

const by_field: Values = {
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
  reviewed_by: user_id,
  resolved_by: user_id,
  email: 'ada@example.com',
  handle: 'ada',
  answers: { audience: '12,000 readers of a newsletter on databases' },
  url: 'https://example.com/pricing?ref=ada',
  landing_url: 'https://example.com/pricing?ref=ada',
  destination_url: 'https://example.com/pricing',
  param: 'ref',
  value: 'ada',
  code: 'ADA20',
  active: true,
  tracked_by: 'link',
  source: 'auto_enrol',
  is_first_sale: true,
  external_charge_id: 'ch_3PqT',
  currency: 'USD',
  method: 'bank_transfer',
  occurred_at: at,
  expires_at: later,
  refunded_at: later,
  mature_at: later,
  due_at: later,
  paid_at: later,
};

const by_family: Record<string, Values> = {
  affiliate: { status: 'active' },
  sale: { amount_minor: 9900 },
  commission: { amount_minor: 1980, status: 'pending' },
  payout: { amount_minor: 198_000, status: 'pending' },
  risk_flag: { kind: 'self_referral', severity: 'high' },
  rule: { name: 'Standard' },
};

const by_type: Record<string, Values> = {
  'affiliate.updated': { status: 'suspended', reason: 'Paid search on the brand name.' },
  'application.approved': { reason: null },
  'application.rejected': { reason: 'We work with newsletters alone.' },
  'affiliate_link.updated': { url: 'https://example.com/?ref=ada', destination_url: 'https://example.com/' },
  'affiliate_coupon.deactivated': { active: false },
  'referral.lead': { email: 'grace@example.com' },
  'referral.deleted': { reason: 'self_referral' },
  'sale.updated': { amount_minor: 8900, previous_amount_minor: 9900 },
  'commission.updated': { status: 'due', previous_status: 'pending' },
  'commission.voided': { reason: 'sale_refunded' },
  'payout.updated': { status: 'processing', previous_status: 'pending' },
  'payout.paid': { external_id: 'tr_4471' },
  'payout.failed': { error_code: 'account_closed', error_message: 'The account was closed.' },
  'payout.not_eligible': {
    reason: 'no_payout_method',
    reason_text: 'The partner has not chosen how to be paid.',
  },
  'risk_flag.created': { evidence: { matched: 'email' } },
  'risk_flag.resolved': { status: 'dismissed', note: 'Two people of one household.' },
  'rule.updated': { before: standard_rate, after: { ...standard_rate, rate_value: 2500 } },
  'rule.status_changed': { status: 'inactive' },
};
