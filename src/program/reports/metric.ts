import { z } from 'zod';

/** What reports add up, as the columns of program.report_fact and program.report_total. */
export const counted = ['clicks', 'referrals', 'leads', 'customers', 'sales'] as const;
export const added = ['revenue_minor', 'refunds_minor', 'commissions_minor', 'clawbacks_minor', 'paid_minor'] as const;

const docs = {
  clicks: 'Clicks, by when they were made.',
  referrals: 'Referrals that are not deleted, by when they were created.',
  leads: 'Customers, by when they signed up.',
  customers: 'Customers, by when they first paid.',
  conversion_bps: 'Customers as a share of clicks, in basis points, rounded half away from zero. 0 without clicks.',
  sales: 'Sales in any currency that a partner is credited with, by when the customer was charged.',
  revenue_minor: 'The amounts of these sales, before refunds.',
  refunds_minor: 'What was refunded of sales that a partner is credited with, by when it was refunded.',
  net_revenue_minor: '`revenue_minor` less `refunds_minor`.',
  commissions_minor:
    'Commissions of sales and bonuses that are neither voided nor rejected, by when the customer was charged; without a sale, by when they were created.',
  clawbacks_minor: 'What clawbacks take back, as a positive number, by when they were created.',
  paid_minor: 'Paid commissions less paid clawbacks, by when they were paid.',
  epc_minor:
    'Earnings per click: `commissions_minor` divided by clicks, rounded half away from zero. 0 without clicks.',
} as const;

export type Metric = keyof typeof docs;
export type Totals = Partial<Record<Metric, number>>;

export const all_metrics = Object.keys(docs) as Metric[];
/** Clicks have no coupons. */
export const metrics_without_clicks = all_metrics.filter(
  (name) => !['clicks', 'conversion_bps', 'epc_minor'].includes(name),
);
export const money_metrics = [
  'revenue_minor',
  'refunds_minor',
  'net_revenue_minor',
  'commissions_minor',
  'clawbacks_minor',
  'paid_minor',
] as const satisfies Metric[];
export const sale_metrics: Metric[] = ['sales', ...money_metrics];

const integer = (name: Metric) => z.int().describe(docs[name]);

/** The metrics of a report are those that its rows have. */
export const metric_fields = Object.fromEntries(all_metrics.map((name) => [name, integer(name).optional()])) as Record<
  Metric,
  z.ZodOptional<z.ZodInt>
>;

export const other_currencies = z
  .array(
    z.object({
      currency: z.string().length(3).describe('ISO 4217.'),
      ...(Object.fromEntries(money_metrics.map((name) => [name, integer(name)])) as Record<
        (typeof money_metrics)[number],
        z.ZodInt
      >),
    }),
  )
  .describe("Money in other currencies than the program's, by currency. It is never added up.");

/** A metric's change. Money and counts are told apart by the name of the difference. */
export const MetricDelta = z.object({
  absolute_minor: z.int().optional().describe('The difference of a money metric, in minor units.'),
  absolute: z.int().optional().describe('The difference of any other metric.'),
  change_bps: z
    .int()
    .nullable()
    .describe('The change in basis points of the previous value, rounded half away from zero. Null: that was 0.'),
});

/** How each metric changed from the window before. */
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

/** Exact, whatever the amounts: their product with 10,000 is beyond the integers that a number holds. */
export function changeBps(difference: number, before: number): number | null {
  if (before === 0) return null;
  const change = ((BigInt(Math.abs(difference)) * 20_000n) / BigInt(Math.abs(before)) + 1n) / 2n;
  const bounded = change > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(change);
  return difference < 0 ? 0 - bounded : bounded;
}
