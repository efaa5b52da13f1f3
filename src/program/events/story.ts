import { sampleId } from '../../core/values/fields.ts';

/**
 * The story that every example tells: Ada is a partner of Acme, Grace comes by her link and pays 99.00 USD, of which 20 % are Ada's. Bob applies to
 * become a partner. Each record is as it is at the end; `src/program/examples.ts` says what it is after each operation.
 */
export const times = {
  program: '2026-11-02T09:00:00.000Z',
  rule: '2026-11-02T09:05:00.000Z',
  partner: '2026-11-03T10:00:00.000Z',
  link: '2026-11-03T10:05:00.000Z',
  coupon: '2026-11-03T10:10:00.000Z',
  application: '2026-11-09T16:20:00.000Z',
  review: '2026-11-10T08:00:00.000Z',
  click: '2026-11-10T14:00:00.000Z',
  sign_up: '2026-11-10T14:12:00.000Z',
  sale: '2026-11-12T08:30:00.000Z',
  flag: '2026-11-12T08:31:00.000Z',
  /** The time at which something is edited, decided or refunded. */
  change: '2026-11-16T11:00:00.000Z',
  /** Thirty days after the sale. */
  mature: '2026-12-12T08:30:00.000Z',
  /** Sixty days after the click. */
  expiry: '2027-01-09T14:00:00.000Z',
  payout: '2027-01-01T00:00:00.000Z',
  due: '2027-01-31T00:00:00.000Z',
  paid: '2027-02-01T09:00:00.000Z',
};

const created = (at: string, updated = at) => ({ created_at: at, updated_at: updated });

const program_id = sampleId('prg');
const partner_id = sampleId('part');
const customer_id = sampleId('cus');
const referral_id = sampleId('ref');
const link_id = sampleId('lnk');
const group_id = sampleId('grp');
const sale_id = sampleId('sale');
const landing_url = 'https://acme.example.com/pricing?ref=ada';

export const program = {
  ...{ id: program_id, name: 'Acme', product_name: 'Acme', website_url: 'https://acme.example.com', subdomain: 'acme' },
  ...{ currency: 'USD', status: 'active', custom_domain: null, terms_url: null, terms_version: null },
  ...{ cookie_days: 60, url_params: ['ref', 'via'], commission_on_net_revenue: false, holding_period_days: 30 },
  ...{ min_payout_minor: 1000, payout_term: 'net_30', payout_methods: ['bank_transfer', 'paypal'] },
  ...{ block_self_referrals: true, blocked_countries: [] },
  ...created(times.program),
};

export const group = {
  ...{ id: group_id, program_id, name: 'Newsletters', slug: 'newsletters', description: 'Newsletters and blogs' },
  ...{ landing_url: 'https://acme.example.com/newsletters', is_private: false, is_default: false },
  ...created(times.program),
};

export const tag = {
  ...{ id: sampleId('tag'), program_id, name: 'Top partner', color: '#1F6FEB' },
  ...created(times.program),
};

export const rule = {
  ...{ id: sampleId('flw'), program_id, name: 'Standard', rate_type: 'percent', rate_value: 2000, priority: 0 },
  ...{ status: 'active', applies_to: 'all', partner_ids: [], group_ids: [], tag_ids: [], link_ids: [] },
  ...{ product_ids: [], duration_months: null, max_payments: null, min_sale_minor: null, max_commission_minor: null },
  ...{ tiers: [], tier_metric: null, starts_at: null, ends_at: null },
  ...created(times.rule),
};

export const partner = {
  ...{ id: partner_id, program_id, group_id, email: 'ada@partner.example.com', first_name: 'Ada' },
  ...{ last_name: 'Lovelace', display_name: 'Ada Lovelace', company_name: 'Lovelace Ltd' },
  ...{ website_url: 'https://ada.example.com', country_code: 'GB', language_code: 'en', handle: 'ada' },
  ...{ status: 'active', currency: 'USD', min_payout_minor: null, metadata: { crm_id: '4711' } },
  ...created(times.partner),
};

/** Bob, who applies. */
export const applicant = { id: sampleId('part').replace(/.$/, '4'), email: 'bob@partner.example.com', handle: 'bob' };

export const application = {
  ...{ id: sampleId('app'), program_id, group_id, partner_id: applicant.id, email: applicant.email },
  ...{ answers: { audience: '12,000 subscribers to a newsletter on databases' }, source: 'newsletter' },
  ...{ status: 'pending', reviewed_by_user_id: null, reviewed_at: null, rejection_reason: null },
  ...created(times.application),
};

export const link = {
  ...{ id: link_id, partner_id, param: 'ref', value: 'ada', destination_url: 'https://acme.example.com/pricing' },
  ...{ url: landing_url, short_url: 'https://rail.example.com/r/k3x9q2', short_slug: 'k3x9q2' },
  ...{ short_domain: 'rail.example.com', label: 'Summer newsletter', rate_override: null },
  ...created(times.link),
};

export const coupon = {
  ...{ id: sampleId('cpn'), program_id, partner_id, group_id: null, code: 'ADA20', external_id: 'promo_ada20' },
  ...{ active: true },
  ...created(times.coupon),
};

export const click = {
  ...{ id: sampleId('clk'), program_id, partner_id, link_id, referral_id, landing_url },
  ...{
    user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    referer: 'https://ada.example.com/',
    country: 'US',
    device: 'desktop',
  },
  is_bot: false,
  created_at: times.click,
};

export const referral = {
  ...{ id: referral_id, program_id, partner_id, link_id, landing_url, utm: null, tracked_by: 'link' },
  ...{ status: 'converted', expires_at: times.expiry },
  ...created(times.click, times.sale),
};

export const customer = {
  ...{ id: customer_id, program_id, partner_id, referral_id, link_id, coupon_id: null, processor: null },
  ...{ external_customer_id: 'cus_0001', external_subscription_id: 'sub_0001', email: 'grace@customer.example.com' },
  ...{ name: 'Grace Hopper', identifier: 'user_42', status: 'active', tracked_by: 'link', verified: true },
  ...{ lead_at: times.sign_up, converted_at: times.sale, metadata: null },
  ...created(times.sign_up, times.sale),
};

/** Grace as a partner, where the program enrols customers. */
export const enrolled = { partner_id: sampleId('part').replace(/.$/, '5'), handle: 'grace', source: 'auto_enrol' };

export const sale = {
  ...{ id: sale_id, program_id, partner_id, customer_id, link_id, referral_id, coupon_id: null },
  ...{ external_charge_id: 'ch_0001', external_subscription_id: 'sub_0001', product_id: 'prod_basic' },
  ...{ amount_minor: 9900, tax_minor: 0, shipping_minor: 0, fee_minor: 0, discount_minor: 0, net_amount_minor: 9900 },
  ...{ refunded_minor: 0, currency: 'USD', status: 'paid', is_first_sale: true, occurred_at: times.sale },
  ...{ refunded_at: null, metadata: null },
  ...created(times.sale),
};

export const commission = {
  ...{ id: sampleId('com'), program_id, partner_id, customer_id, sale_id, rule_id: rule.id, payout_id: null },
  ...{ kind: 'sale', clawback_of: null, amount_minor: 1980, base_amount_minor: 9900, currency: 'USD' },
  ...{ rate_type: 'percent', rate_value: 2000, status: 'pending', mature_at: times.mature },
  ...{ approved_at: null, paid_at: null, voided_at: null, void_reason: null, hold_reason: null },
  ...{ held_at: null, note: null },
  ...created(times.sale),
};

export const refund = {
  ...{ id: sampleId('rfd'), program_id, sale_id, amount_minor: 500, currency: 'USD' },
  ...{ external_refund_id: 're_0001', reason: 'Late delivery', refunded_at: times.change },
  ...{ reversed_at: null, reversal_reason: null },
  ...created(times.change),
};

export const dispute = {
  ...{ id: sampleId('dsp'), program_id, sale_id, amount_minor: 9900, currency: 'USD', status: 'open' },
  ...{ external_dispute_id: 'dp_0001', reason: 'fraudulent', refund_id: null, opened_at: times.change },
  ...{ closed_at: null, ...created(times.change) },
};

export const payout_batch = {
  ...{ id: sampleId('batch'), program_id, status: 'ready', cutoff: times.payout, due_at: times.due },
  ...{ scheduled_for: times.payout, approval_required: false, created_by_user_id: null },
  ...{ approved_by_user_id: null, approved_at: null, not_sent: [], files: [] },
  progress: {
    ...{ state: 'done', partners_looked_at: 2, payouts: 1 },
    amounts: [{ currency: 'USD', payouts: 1, amount_minor: 1980 }],
    not_eligible: [{ reason: 'no_payout_method', count: 1 }],
  },
  ...created(times.payout),
};

export const payout = {
  ...{ id: sampleId('pyt'), program_id, batch_id: payout_batch.id, partner_id, amount_minor: 1980, fee_minor: null },
  ...{ currency: 'USD', status: 'pending', livemode: true, method: 'bank_transfer', external_id: null },
  ...{ destination_hint: '3000', period_start: times.sale, period_end: times.payout, due_at: times.due },
  ...{ submitted_at: null, paid_at: null, failed_at: null, attempt: 0, error_code: null, error_message: null },
  ...{ commission_count: 1, in_progress: null },
  ...created(times.payout),
};

export const risk_flag = {
  ...{ id: sampleId('rsk'), program_id, partner_id, customer_id, kind: 'self_referral', severity: 'high' },
  ...{ evidence: { matched: 'browser' }, status: 'open', note: null, resolved_by: null, resolved_at: null },
  ...created(times.flag),
};
