import { z } from 'zod';
import { sampleId } from '../../core/values/fields.ts';
import { type EventType, eventType } from '../../webhooks/events/catalogue.ts';
import {
  applicant,
  application,
  commission,
  coupon,
  customer,
  enrolled,
  link,
  partner,
  payout,
  referral,
  refund,
  risk_flag,
  rule,
  sale,
  times,
} from './story.ts';

/** A type of event as its family declares it: its example is made here. */
interface Declaration {
  doc: string;
  data: z.ZodRawShape;
  postback?: { omit: string[] };
  /** The fields that can identify a person. */
  personal?: string[];
}

/** The postback of a type that a partner receives with all of its fields. */
export const whole = { omit: [] };

/** The types of a family, each with the example that its fields make. */
export const eventTypes = <Declared extends Record<string, Declaration>>(declared: Declared) =>
  Object.fromEntries(
    Object.entries(declared).map(([type, { doc, data, ...traits }]) => [
      type,
      eventType(doc, data, exampleOf(type, data), traits),
    ]),
  ) as unknown as { [Type in keyof Declared]: EventType<Declared[Type]['data']> };

/** Returns the example values of a type's fields: the type's own value, else its family's record, else the field's. Optional fields are left out. */
function exampleOf(type: string, fields: z.ZodRawShape): Record<string, never> {
  const [family = ''] = type.split('.');
  const values = { ...by_field, ...by_family[family], ...by_type[type] };
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([field, schema]) => field in values && !(schema instanceof z.ZodOptional))
      .map(([field]) => [field, values[field] as never]),
  );
}

type Values = Record<string, unknown>;

/** The user of the organization who decides. */
const user_id = sampleId('usr');
const rate = { rate_type: rule.rate_type, rate_value: rule.rate_value, priority: rule.priority, status: rule.status };

/** The ids that an event names its records by. */
const by_field: Values = {
  partner_id: partner.id,
  application_id: application.id,
  customer_id: customer.id,
  referral_id: referral.id,
  link_id: link.id,
  coupon_id: coupon.id,
  sale_id: sale.id,
  commission_id: commission.id,
  rule_id: rule.id,
  payout_id: payout.id,
  risk_flag_id: risk_flag.id,
  group_id: partner.group_id,
  handle: partner.handle,
  reviewed_by: user_id,
  resolved_by: user_id,
};

const by_family: Record<string, Values> = {
  affiliate: partner,
  application: { ...application, handle: applicant.handle },
  affiliate_link: link,
  affiliate_coupon: coupon,
  referral,
  sale,
  commission,
  payout,
  risk_flag,
  customer: { ...customer, ...enrolled },
  rule,
};

const by_type: Record<string, Values> = {
  'affiliate.updated': { status: 'suspended', reason: 'Paid search on the brand name' },
  'application.approved': { reason: null },
  'application.rejected': { reason: 'We only work with newsletters about databases.' },
  'affiliate_link.updated': {
    url: 'https://acme.example.com/start?ref=ada',
    destination_url: 'https://acme.example.com/start',
  },
  'affiliate_coupon.deactivated': { active: false },
  'referral.lead': { email: customer.email },
  'referral.deleted': { reason: 'deleted_by_hand' },
  'sale.updated': { amount_minor: 8900, previous_amount_minor: sale.amount_minor },
  'sale.refunded': { amount_minor: refund.amount_minor, refunded_at: refund.refunded_at },
  'commission.updated': { status: 'due', previous_status: 'pending' },
  'commission.paid': { payout_id: payout.id, paid_at: times.paid },
  'commission.voided': { reason: 'sale_refunded' },
  'payout.updated': { status: 'processing', previous_status: 'pending' },
  'payout.paid': { external_id: 'tr_4471', paid_at: times.paid },
  'payout.failed': { error_code: 'account_closed', error_message: 'The account is closed.' },
  'payout.not_eligible': {
    payout_id: null,
    reason: 'no_payout_method',
    reason_text: 'The partner has not chosen a payout method.',
  },
  'risk_flag.resolved': { status: 'dismissed', note: 'Two people in one household.' },
  'rule.updated': { before: rate, after: { ...rate, rate_value: 2500 } },
  'rule.status_changed': { status: 'inactive' },
};
