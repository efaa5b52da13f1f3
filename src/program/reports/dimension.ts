import sql, { join, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { DayLengths } from './span.ts';

/** The columns of program.report_fact that reports group and filter by. */
export const dimensions = [
  'partner_id',
  'link_id',
  'coupon_id',
  'country',
  'landing_page',
  'product_id',
  'customer_id',
] as const;
export type Dimension = (typeof dimensions)[number];

/** Filters of reports: the dimensions, the group that a partner is in today, and of payouts their batch. */
export type Filters = Partial<Record<Dimension | 'group_id' | 'batch_id', string>>;

/** The lengths of the spans in program.report_total, in minutes: as program.report_spans() has them. */
export const span_lengths: Record<Dimension, number[]> & { '': DayLengths } = {
  '': [15, 1440, 23040],
  partner_id: [1440, 5760, 23040, 92160],
  link_id: [1440, 5760, 23040, 92160],
  coupon_id: [1440, 23040],
  country: [1440, 23040],
  landing_page: [1440, 5760, 23040, 92160],
  product_id: [1440, 23040],
  customer_id: [1440],
};

/**
 * The dimension whose sums hold all that is asked for, or undefined where only the facts do.
 * @param rows the dimension of the report's rows; empty where it has none
 */
export function summedBy(rows: Dimension | '', filters: Filters): Dimension | '' | undefined {
  const needed = new Set<Dimension>(rows === '' ? [] : [rows]);
  for (const name of Object.keys(filters)) needed.add(name === 'group_id' ? 'partner_id' : (name as Dimension));
  const [only = ''] = needed;
  return needed.size > 1 ? undefined : only;
}

/** The condition on rows that a filter selects. `column` gives what a dimension is read from; '' and null are none. */
export function filterCondition(
  tx: Tx,
  program_id: string,
  filters: Filters,
  column: (name: Dimension | 'batch_id') => Sql,
): Sql {
  const conditions = Object.entries(filters).map(([name, value]) => {
    if (name === 'group_id') return inGroup(tx, program_id, column('partner_id'), value);
    const field = column(name as Dimension);
    return value === 'none' ? sql`coalesce(${field}, '') = ''` : sql`${field} = ${value}`;
  });
  return conditions.length === 0 ? sql`true` : join(conditions, ' and ');
}

/** Partners' group of today. */
const inGroup = (tx: Tx, program_id: string, partner_id: Sql, group_id: string): Sql => sql`${partner_id} in (
    select p.id from program.partner p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${program_id}
      and ${group_id === 'none' ? sql`p.group_id is null` : sql`p.group_id = ${group_id}`})`;

const nouns = ['click', 'referral', 'lead', 'customer', 'sale', 'refund', 'commission', 'clawback', 'paid'] as const;
export type Noun = (typeof nouns)[number];
const of_sales: readonly Noun[] = ['sale', 'refund', 'commission', 'clawback', 'paid'];

/** The facts that have the dimensions: as program.report_keys() says it. */
export function nounsOf(names: (keyof Filters | '')[]): readonly Noun[] {
  if (names.some((name) => name === 'product_id' || name === 'customer_id')) return of_sales;
  return names.includes('coupon_id') ? nouns.filter((noun) => noun !== 'click') : nouns;
}
