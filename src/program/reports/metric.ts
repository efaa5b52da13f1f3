import { z } from 'zod';

const docs = {
  clicks: 'Clicks, by when they were made.',
  referrals: 'Referrals that are not deleted, by when they were created.',
  leads: 'Customers, by when they signed up. Erased ones are not counted.',
  customers: 'Customers, by when they first paid. Erased ones are not counted.',
  conversion_bps: 'Customers as a share of clicks, in basis points, rounded half away from zero. 0 without clicks.',
  sales: 'Sales that a partner is credited with, in any currency, by when the customer was charged.',
  revenue_minor:
    'The amounts of sales that a partner is credited with, before refunds, by when the customer was charged.',
  refunds_minor: 'What was refunded of sales that a partner is credited with, by when it was refunded.',
  net_revenue_minor: '`revenue_minor` less `refunds_minor`.',
  commissions_minor:
    'Commissions for sales, and bonuses, that are neither voided nor rejected, by when the customer was charged; without a sale, by when they were created.',
  clawbacks_minor:
    'What clawbacks take back, without voided and rejected ones, as a positive number, by when they were created.',
  paid_minor:
    'Paid commissions less paid clawbacks, by when they were paid. In `payouts`: the amounts of paid payouts, without those in test mode.',
  epc_minor:
    'Earnings per click: `commissions_minor` divided by clicks, rounded half away from zero. 0 without clicks.',
  payouts: 'Payouts, including those in test mode, by when they were created.',
  pending_minor: 'The amounts of pending payouts.',
  processing_minor: 'The amounts of payouts in processing.',
  failed_minor: 'The amounts of failed payouts.',
  fee_minor: 'What the rails charged for the payouts, as far as it is known.',
} as const;

export type Metric = keyof typeof docs;
export type Totals = Partial<Record<Metric, number>>;

/** The measures of a report: the columns of its facts, and the metrics that follow from their sums. */
export interface Measures {
  /** Numbers of things, whatever their currency. */
  counted: readonly Metric[];
  /** Amounts, each in a currency. */
  added: readonly Metric[];
  /** All that is shown of another currency. */
  money: readonly Metric[];
  derived: readonly Metric[];
}

/** The measures of program.report_fact and program.report_total. */
export const fact_measures = {
  counted: ['clicks', 'referrals', 'leads', 'customers', 'sales'],
  added: ['revenue_minor', 'refunds_minor', 'commissions_minor', 'clawbacks_minor', 'paid_minor'],
  money: ['revenue_minor', 'refunds_minor', 'net_revenue_minor', 'commissions_minor', 'clawbacks_minor', 'paid_minor'],
  derived: ['net_revenue_minor', 'conversion_bps', 'epc_minor'],
} as const satisfies Measures;

const payout_money = ['pending_minor', 'processing_minor', 'paid_minor', 'failed_minor', 'fee_minor'] as const;
export const payout_measures = {
  counted: ['payouts'],
  added: payout_money,
  money: payout_money,
  derived: [],
} as const satisfies Measures;

export const payout_metrics: Metric[] = ['payouts', ...payout_money];
const every_metric = Object.keys(docs) as Metric[];
export const all_metrics = every_metric.filter((name) => name === 'paid_minor' || !payout_metrics.includes(name));
/** Clicks have no coupons. */
export const metrics_without_clicks = all_metrics.filter(
  (name) => !['clicks', 'conversion_bps', 'epc_minor'].includes(name),
);
/** The columns of facts and of their sums. */
export const fact_columns: Metric[] = [...fact_measures.counted, ...fact_measures.added];
export const sale_metrics: Metric[] = ['sales', ...fact_measures.money];

const integer = (name: Metric) => z.int().describe(docs[name]);

/** The metrics of a report are those that its rows have. */
export const metric_fields = Object.fromEntries(every_metric.map((name) => [name, integer(name).optional()])) as Record<
  Metric,
  z.ZodOptional<z.ZodInt>
>;

export const other_currencies = z
  .array(
    z.object({
      currency: z.string().length(3).describe('ISO 4217.'),
      ...(Object.fromEntries(
        [...fact_measures.money, ...payout_money].map((name) => [name, integer(name).optional()]),
      ) as Partial<Record<Metric, z.ZodOptional<z.ZodInt>>>),
    }),
  )
  .describe("Money in currencies other than the program's, by currency. Different currencies are never added up.");

/** The figures of a report in the examples of the description. */
export const example_metrics = {
  ...{ clicks: 420, referrals: 130, leads: 24, customers: 12, conversion_bps: 286, sales: 15 },
  ...{ revenue_minor: 148_500, refunds_minor: 9_900, net_revenue_minor: 138_600, commissions_minor: 29_700 },
  ...{ clawbacks_minor: 0, paid_minor: 18_000, epc_minor: 71, other_currencies: [] },
};

/** A metric's change. Money and counts are told apart by the name of the difference. */
export const MetricDelta = z.object({
  absolute_minor: z
    .int()
    .optional()
    .describe('The value less the previous one, in minor units. For metrics that are amounts.'),
  absolute: z.int().optional().describe('The value less the previous one. For all other metrics.'),
  change_bps: z
    .int()
    .nullable()
    .describe(
      'The change in basis points of the previous value, rounded half away from zero. Null: it was 0, or the change or one of the values is beyond ±(2^53 − 1).',
    ),
});

/** Returns the change of each metric since the window before. */
export function deltaOf(now: Totals, before: Totals): Record<string, z.infer<typeof MetricDelta>> {
  const names = Object.keys(now).filter((name) => typeof now[name as Metric] === 'number') as Metric[];
  return Object.fromEntries(
    names.map((name) => {
      const difference = (now[name] as number) - (before[name] as number);
      const absolute = name.endsWith('_minor') ? { absolute_minor: difference } : { absolute: difference };
      return [name, { ...absolute, change_bps: changeBps(difference, before[name] as number) }];
    }),
  );
}

/**
 * Exact, whatever the amounts: their product with 10,000 is beyond the integers that a number holds. A value at the bound of those stands for
 * one that is not known, and so has no change.
 */
export function changeBps(difference: number, before: number): number | null {
  const isBounded = (value: number) => Math.abs(value) >= Number.MAX_SAFE_INTEGER;
  if (before === 0 || isBounded(before) || isBounded(before + difference)) return null;
  const change = ((BigInt(Math.abs(difference)) * 20_000n) / BigInt(Math.abs(before)) + 1n) / 2n;
  if (change > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return difference < 0 ? 0 - Number(change) : Number(change);
}
