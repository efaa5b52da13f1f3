/**
 * Facts about views that Postgres does not record: the name in the API, the key, what columns refer to, and by which of them an index finds or orders
 * the rows. A view that is not named here is not in the API; `test/data/graphql/indexes.test.ts` holds each filter against its plan.
 */
export interface ViewTags {
  /** The field of Query with its rows. The one with a single row is named as the view is; where both are the same there is only the list. */
  list: string;
  /** Columns that identify a row, and end each order. */
  key: string[];
  /** Columns of the key that may be null: texts that are never empty. */
  nullable?: string[];
  /** Columns that can be compared for equality. */
  equals: string[];
  /** Columns that can be compared with a lower and an upper bound, by `<column>_gte` and `<column>_lt`. */
  between?: string[];
  /** Columns that rows can be ordered by, besides the key. None is ever null. */
  orders?: string[];
  /** Columns that can be added up. */
  sums?: string[];
  /** The records that its columns name: the field, and the name of the list of these rows in that record. */
  refers?: Reference[];
}

export interface Reference {
  field: string;
  to: string;
  /** `id` of the other view alone, unless an index of this one begins with the program. */
  by: string;
  with_program?: true;
  /** The list of these rows in the other record; the row itself where `by` is the key of this view. */
  back?: string;
}

const program = (back?: string): Reference => ({
  field: 'program',
  to: 'program',
  by: 'program_id',
  ...(back ? { back } : {}),
});
const refer = (to: string, back?: string, field = to): Reference => ({
  ...{ field, to, by: `${field}_id` },
  ...(back ? { back } : {}),
});
/** For views whose index leads over the program to the partner. */
const partnerOfProgram = (back: string): Reference => ({ ...refer('partner', back), with_program: true });

/**
 * A rollup by day. It is computed for each request, from the rows that the conditions leave.
 * @param key what identifies a row of a day and a program
 */
const daily = (
  view: string,
  { key, ...rest }: Pick<ViewTags, 'key' | 'nullable' | 'sums'>,
  equals = ['partner_id'],
): ViewTags => ({
  ...{ list: view, key: ['day', 'program_id', ...key], ...rest },
  ...{ equals: ['program_id', ...equals], between: ['day'], orders: ['day'] },
  refers: [program(), refer('partner')],
});

const money_of_sale = ['amount_minor', 'net_amount_minor', 'refunded_minor', 'remaining_minor', 'fee_minor'];

export const tags: Record<string, ViewTags> = {
  organization: { list: 'organizations', key: ['id'], equals: ['id'] },
  user: { list: 'users', key: ['id'], equals: ['id'] },
  audit_entry: {
    ...{ list: 'audit_entries', key: ['id'], equals: ['id', 'object_id', 'api_key_id', 'user_id', 'operation'] },
  },
  program: { list: 'programs', key: ['id'], equals: ['id'] },
  group: { list: 'groups', key: ['id'], equals: ['id', 'program_id'], refers: [program('groups')] },
  tag: { list: 'tags', key: ['id'], equals: ['id', 'program_id'], refers: [program('tags')] },
  partner: {
    ...{ list: 'partners', key: ['id'], equals: ['id', 'program_id', 'group_id', 'status', 'handle'] },
    refers: [program('partners'), refer('group', 'partners')],
  },
  partner_tag: {
    ...{ list: 'partner_tags', key: ['partner_id', 'tag_id'], equals: ['partner_id', 'tag_id'] },
    refers: [refer('partner', 'partner_tags'), refer('tag', 'partner_tags')],
  },
  payout_method: {
    ...{ list: 'payout_methods', key: ['partner_id'], equals: ['partner_id'] },
    refers: [refer('partner', 'payout_method')],
  },
  application: {
    ...{ list: 'applications', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'status'] },
    refers: [program('applications'), refer('partner', 'applications')],
  },
  link: {
    ...{ list: 'links', key: ['id'], equals: ['id', 'program_id', 'partner_id'] },
    refers: [program('links'), refer('partner', 'links')],
  },
  coupon: {
    ...{ list: 'coupons', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'external_id'] },
    refers: [program('coupons'), refer('partner', 'coupons')],
  },
  publishable_key: {
    ...{ list: 'publishable_keys', key: ['id'], equals: ['id', 'program_id'] },
    refers: [program('publishable_keys')],
  },
  rule: { list: 'rules', key: ['id'], equals: ['id', 'program_id', 'status'], refers: [program('rules')] },
  click: {
    ...{ list: 'clicks', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'link_id', 'referral_id'] },
    ...{ between: ['created_at'], orders: [] },
    refers: [program('clicks'), partnerOfProgram('clicks'), refer('link', 'clicks'), refer('referral', 'clicks')],
  },
  referral: {
    ...{ list: 'referrals', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'link_id', 'status'] },
    between: ['created_at'],
    refers: [program('referrals'), partnerOfProgram('referrals'), refer('link', 'referrals')],
  },
  customer: {
    ...{ list: 'customers', key: ['id'] },
    equals: [
      ...['id', 'program_id', 'partner_id', 'referral_id', 'link_id', 'coupon_id'],
      ...['status', 'external_customer_id'],
    ],
    between: ['created_at', 'lead_at', 'converted_at'],
    refers: [
      ...[program('customers'), partnerOfProgram('customers')],
      ...[refer('referral', 'customers'), refer('link', 'customers'), refer('coupon', 'customers')],
    ],
  },
  sale: {
    ...{ list: 'sales', key: ['id'] },
    equals: [
      ...['id', 'program_id', 'partner_id', 'customer_id', 'link_id', 'referral_id', 'coupon_id'],
      ...['status', 'external_charge_id'],
    ],
    ...{ between: ['created_at', 'occurred_at'], orders: ['occurred_at'], sums: money_of_sale },
    refers: [
      ...[program('sales'), partnerOfProgram('sales'), refer('customer', 'sales')],
      ...[refer('link', 'sales'), refer('referral', 'sales'), refer('coupon', 'sales')],
    ],
  },
  refund: {
    ...{ list: 'refunds', key: ['id'], equals: ['id', 'program_id', 'sale_id', 'external_refund_id'] },
    ...{ between: ['created_at', 'refunded_at'], sums: ['amount_minor'] },
    refers: [program('refunds'), refer('sale', 'refunds'), refer('partner')],
  },
  dispute: {
    ...{ list: 'disputes', key: ['id'], equals: ['id', 'program_id', 'sale_id', 'status', 'external_dispute_id'] },
    ...{ between: ['created_at'], sums: ['amount_minor'] },
    refers: [program('disputes'), refer('sale', 'disputes'), refer('refund'), refer('partner')],
  },
  sale_claim: {
    ...{ list: 'sale_claims', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'sale_id', 'status'] },
    refers: [
      program('sale_claims'),
      refer('partner', 'sale_claims'),
      refer('sale', 'claims'),
      refer('processor_event'),
    ],
  },
  processor: {
    ...{ list: 'processors', key: ['id'], equals: ['id', 'program_id'] },
    refers: [program('processors')],
  },
  processor_event: {
    ...{ list: 'processor_events', key: ['id'] },
    equals: ['id', 'program_id', 'status', 'external_object_id', 'external_customer_id'],
    refers: [program('processor_events')],
  },
  processor_object: {
    ...{ list: 'processor_objects', key: ['program_id', 'processor', 'external_id'] },
    equals: ['program_id', 'object_id'],
    refers: [program()],
  },
  processor_total: {
    ...{ list: 'processor_totals', key: ['program_id', 'processor', 'day', 'kind', 'currency'] },
    ...{ equals: ['program_id'], sums: ['theirs_minor', 'ours_minor', 'uncredited_minor', 'difference_minor'] },
    refers: [program('processor_totals')],
  },
  commission: {
    ...{ list: 'commissions', key: ['id'] },
    equals: ['id', 'program_id', 'partner_id', 'customer_id', 'sale_id', 'rule_id', 'payout_id', 'status'],
    ...{ between: ['created_at', 'mature_at'], orders: ['mature_at'], sums: ['amount_minor', 'counted_minor'] },
    refers: [
      ...[program('commissions'), partnerOfProgram('commissions'), refer('customer', 'commissions')],
      ...[refer('sale', 'commissions'), refer('rule', 'commissions'), refer('payout', 'commissions')],
    ],
  },
  risk_flag: {
    ...{ list: 'risk_flags', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'customer_id', 'status'] },
    refers: [program('risk_flags'), refer('partner', 'risk_flags'), refer('customer', 'risk_flags')],
  },
  event: {
    ...{ list: 'events', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'type'] },
    ...{ between: ['created_at', 'position'], orders: ['position'] },
    refers: [program('events'), partnerOfProgram('events')],
  },
  webhook_endpoint: {
    ...{ list: 'webhook_endpoints', key: ['id'], equals: ['id', 'program_id'] },
    refers: [program('webhook_endpoints'), refer('partner')],
  },
  webhook_delivery: {
    ...{
      list: 'webhook_deliveries',
      key: ['id'],
      equals: ['id', 'program_id', 'endpoint_id'],
      between: ['created_at'],
    },
    refers: [program('webhook_deliveries'), refer('webhook_endpoint', 'deliveries', 'endpoint'), refer('event')],
  },
  webhook_attempt: {
    ...{ list: 'webhook_attempts', key: ['delivery_id', 'attempt'], equals: ['delivery_id'], between: ['at'] },
    refers: [refer('webhook_delivery', 'attempts', 'delivery')],
  },
  payout_batch: {
    ...{ list: 'payout_batches', key: ['id'], equals: ['id', 'program_id'] },
    refers: [program('payout_batches')],
  },
  payout: {
    ...{ list: 'payouts', key: ['id'], equals: ['id', 'program_id', 'partner_id', 'batch_id', 'status'] },
    sums: ['amount_minor', 'fee_minor'],
    refers: [program('payouts'), refer('partner', 'payouts'), refer('payout_batch', 'payout_records', 'batch')],
  },
  payout_attempt: {
    ...{ list: 'payout_attempts', key: ['id'], equals: ['id', 'program_id', 'reference'] },
    refers: [program(), refer('payout')],
  },
  payout_statement: {
    ...{ list: 'payout_statements', key: ['payout_id'] },
    equals: ['payout_id', 'program_id', 'partner_id', 'statement_number'],
    sums: ['total_minor', 'fee_minor'],
    refers: [program(), refer('partner'), refer('payout', 'statement')],
  },
  commission_entry: {
    ...{ list: 'commission_entries', key: ['position'], equals: ['partner_id', 'commission_id'] },
    ...{ between: ['posted_at'], sums: ['amount_minor'] },
    refers: [program(), refer('partner', 'commission_entries'), refer('commission', 'entries'), refer('payout')],
  },
  partner_ledger: {
    ...{ list: 'partner_ledger', key: ['position'], equals: ['program_id', 'partner_id'], between: ['posted_at'] },
    refers: [program(), refer('partner', 'ledger')],
  },
  partner_ledger_monthly: {
    ...{
      list: 'partner_ledger_monthly',
      key: ['partner_id', 'currency', 'month'],
      equals: ['program_id', 'partner_id'],
    },
    ...{ between: ['month'], orders: ['month'] },
    refers: [program(), refer('partner', 'ledger_monthly')],
  },
  partner_balance: {
    ...{ list: 'partner_balance', key: ['partner_id', 'currency'], equals: ['program_id', 'partner_id'] },
    ...{ orders: ['balance_minor', 'due_minor'], sums: ['earned_minor', 'due_minor', 'paid_minor', 'balance_minor'] },
    refers: [program(), refer('partner', 'balance')],
  },
  payable_liability: {
    ...{ list: 'payable_liability', key: ['program_id', 'currency'], equals: ['program_id'] },
    refers: [program('payable_liability')],
  },
  paid_yearly: {
    ...{ list: 'paid_yearly', key: ['partner_id', 'year', 'currency'], equals: ['program_id', 'partner_id', 'year'] },
    ...{ orders: ['year', 'paid_minor'], sums: ['paid_minor', 'fee_minor'] },
    refers: [program(), refer('partner', 'paid_yearly')],
  },
  reconciliation: {
    ...{ list: 'reconciliation', key: ['id'], equals: ['program_id', 'object', 'external_id'] },
    ...{ between: ['occurred_at'], sums: ['amount_minor', 'fee_minor'] },
    refers: [program(), refer('partner')],
  },
  click_daily: daily(
    'click_daily',
    {
      ...{ key: ['partner_id', 'link_id', 'country'], nullable: ['link_id', 'country'] },
      sums: ['clicks', 'credited_clicks'],
    },
    ['partner_id', 'link_id'],
  ),
  sale_daily: daily('sale_daily', {
    ...{ key: ['partner_id', 'product_id', 'currency'], nullable: ['partner_id', 'product_id'] },
    sums: ['sales', 'first_sales', 'amount_minor', 'net_amount_minor', 'refunded_minor'],
  }),
  commission_daily: daily('commission_daily', {
    key: ['partner_id', 'currency'],
    sums: ['earned_minor', 'adjusted_minor', 'clawed_back_minor', 'voided_minor', 'paid_minor'],
  }),
  funnel_daily: daily('funnel_daily', {
    key: ['partner_id'],
    sums: ['clicks', 'referrals', 'leads', 'customers', 'sales'],
  }),
  cohort_revenue: {
    ...{ list: 'cohort_revenue', key: ['program_id', 'cohort', 'months_since', 'currency'], equals: ['program_id'] },
    ...{ between: ['cohort'], orders: ['cohort'], sums: ['revenue_minor', 'refunded_minor', 'net_revenue_minor'] },
    refers: [program()],
  },
  refund_rate: {
    ...{ list: 'refund_rate', key: ['month', 'program_id', 'partner_id', 'currency'], nullable: ['partner_id'] },
    ...{ equals: ['program_id', 'partner_id'], between: ['month'], orders: ['month'] },
    sums: ['sales', 'refunded_sales', 'amount_minor', 'refunded_minor'],
    refers: [program(), refer('partner')],
  },
  webhook_health: {
    ...{ list: 'webhook_health', key: ['endpoint_id', 'day'], equals: ['endpoint_id'], between: ['day'] },
    refers: [refer('webhook_endpoint', 'health', 'endpoint')],
  },
  brand: { list: 'brands', key: ['id'], equals: ['id'], refers: [program()] },
  prospect: {
    ...{ list: 'prospects', key: ['id'], equals: ['id', 'brand_id'] },
    refers: [refer('brand', 'prospects'), refer('partner')],
  },
  campaign: {
    ...{ list: 'campaigns', key: ['id'], equals: ['id', 'brand_id'] },
    refers: [refer('brand', 'campaigns')],
  },
  sequence: {
    ...{ list: 'sequences', key: ['id'], equals: ['id', 'campaign_id', 'prospect_id'] },
    refers: [refer('brand'), refer('campaign', 'sequences'), refer('prospect', 'sequences')],
  },
  message: {
    ...{ list: 'messages', key: ['id'], equals: ['id', 'prospect_id', 'campaign_id', 'thread_id'] },
    refers: [refer('brand'), refer('campaign', 'messages'), refer('prospect', 'messages'), refer('sequence')],
  },
  deal: {
    ...{ list: 'deals', key: ['id'], equals: ['id', 'brand_id', 'prospect_id', 'program_id', 'partner_id'] },
    sums: ['upfront_fee_minor'],
    refers: [refer('brand', 'deals'), refer('prospect', 'deals'), program('deals'), refer('partner', 'deals')],
  },
  outreach_daily: {
    ...{ list: 'outreach_daily', key: ['day', 'brand_id', 'campaign_id'], nullable: ['campaign_id'] },
    ...{ equals: ['brand_id', 'campaign_id'], between: ['day'], orders: ['day'] },
    sums: ['sent', 'first_emails', 'bounced', 'replies', 'interested_replies', 'unsubscribe_replies', 'unsubscribed'],
    refers: [refer('brand'), refer('campaign')],
  },
};
