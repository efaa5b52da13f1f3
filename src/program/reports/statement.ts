import sql, { join, raw, type Sql } from 'sql-template-tag';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { safeSum } from '../programs/tally.ts';
import type { Asked } from './asked.ts';
import { facts, payoutFacts } from './facts.ts';
import type { Measures, Metric } from './metric.ts';

declareUnique('report_slice', { report_slice_unique: null });
declareUnique('report_key', { report_key_unique: null });

/** A report of all its keys. It joins nothing by key: Postgres takes keys for a few, and would compare each with each. */
export function reportStatement(tx: Tx, asked: Asked): Sql {
  const { kind } = asked;
  const measures = columnsOf(kind.measures);
  return sql`
    with facts (w, key, currency, ${measures}) as (${kind.key === 'batch_id' ? payoutFacts(tx, asked) : facts(tx, asked)}),
    by_currency (w, key, currency, ${measures}) as materialized (${byCurrency(kind.measures, sql`facts`)}),
    ${answer(asked, sql`by_currency`, sql`true`)}`;
}

export const columnsOf = ({ counted, added }: Measures): Sql => join([...counted, ...added].map((name) => raw(name)));

/** The sums of rows `f` by window, key and currency, of those that are not all 0. */
export function byCurrency({ counted, added }: Measures, from: Sql): Sql {
  const sums = [...counted, ...added].map((name) => sql`program.bigint_sum(f.${raw(name)})`);
  return sql`
    select f.w, f.key, f.currency, ${join(sums)}
    from ${from} f
    group by 1, 2, 3
    having num_nonnulls(${join(sums.map((sum) => sql`nullif(${sum}, 0)`))}) > 0`;
}

/**
 * The rest of a statement: rows and totals.
 * @param totals what totals are the sums of; rows are those of `by_currency`, which has one for each window, key and currency
 * @param is_whole whether the rows are all that were asked for, from `by_key`
 */
export function answer({ program, kind, previous_windows, order }: Asked, totals: Sql, is_whole: Sql): Sql {
  const { measures } = kind;
  const side = sideOf('c', previous_windows);
  const shown = order ? sql`where k.place <= ${order.limit}` : sql``;
  return sql`
    by_key as materialized (
      select c.w, c.key, ${join(metrics(measures, program.currency))}, ${otherCurrencies(measures, program.currency)} as other_currencies
      from by_currency c
      group by c.w, c.key
    ),
    total_by_currency as (
      select ${side} as side, c.currency, ${join(sumsOf(measures, 'c'))}
      from ${totals} c
      group by 1, 2
    )
    select false as is_total, ${is_whole} as is_whole, ${sideOf('k', previous_windows)} as side, k.w as nth, k.key, ${join(fields(measures, 'k'))},
      k.other_currencies, k.place
    from (select k.*, row_number() over (partition by k.w order by ${rank(order)}) as place from by_key k) k
    ${shown}
    union all
    select true, ${is_whole}, s.side, 0, '', ${join(fields(measures, 't'))}, t.other_currencies, 0
    from (values (0), (1)) as s (side)
    cross join lateral (
      select ${join(metrics(measures, program.currency))}, ${otherCurrencies(measures, program.currency)} as other_currencies
      from total_by_currency c
      where c.side = s.side
    ) as t
    where s.side = 1 or ${previous_windows > 0}
    order by is_total desc, side, nth, place`;
}

const rank = (order: Asked['order']): Sql =>
  order
    ? sql`k.${raw(order.metric)} ${raw(order.descending ? 'desc' : 'asc')}, k.key collate "C"`
    : sql`k.key collate "C"`;

const sumsOf = ({ counted, added }: Measures, alias: string): Sql[] =>
  [...counted, ...added].map((name) => sql`program.bigint_sum(${raw(`${alias}.${name}`)}) as ${raw(name)}`);

/** 0: the period before, 1: the window itself. */
const sideOf = (alias: string, previous_windows: number): Sql =>
  sql`case when ${raw(alias)}.w > ${previous_windows} then 1 else 0 end`;

/** All metrics of rows `c`: counts over all currencies, money in the program's. */
const metrics = (measures: Measures, currency: string): Sql[] =>
  [...measures.counted, ...measures.added, ...measures.derived].map(
    (name) => sql`${metric(measures, name, currency)} as ${raw(name)}`,
  );

export function metric({ counted }: Measures, name: string, currency: string): Sql {
  const own = (sum: string): Sql =>
    sql`coalesce(program.bigint_sum(c.${raw(sum)}) filter (where c.currency = ${currency}), 0)`;
  const count = (sum: string): Sql => sql`coalesce(program.bigint_sum(c.${raw(sum)}), 0)`;
  const share = (of: Sql): Sql => sql`coalesce(round(${of}::numeric / nullif(program.bigint_sum(c.clicks), 0)), 0)`;
  const follows: Record<string, () => Sql> = {
    net_revenue_minor: () => sql`${own('revenue_minor')} - ${own('refunds_minor')}`,
    conversion_bps: () => share(sql`(${count('customers')} * 10000)`),
    epc_minor: () => share(own('commissions_minor')),
  } satisfies Record<keyof typeof sources, () => Sql>;
  const sum = (counted as readonly string[]).includes(name) ? count(name) : own(name);
  return safeSum(follows[name]?.() ?? sum);
}

const sources = {
  net_revenue_minor: ['revenue_minor', 'refunds_minor'],
  conversion_bps: ['customers', 'clicks'],
  epc_minor: ['commissions_minor', 'clicks'],
} satisfies Partial<Record<Metric, Metric[]>>;

/** The columns of sums that `metric` reads. */
export const sourcesOf = (name: Metric): Metric[] => (sources as Partial<Record<Metric, Metric[]>>)[name] ?? [name];

const fields = ({ counted, added, derived }: Measures, alias: string): Sql[] =>
  [...counted, ...added, ...derived].map((name) => raw(`${alias}.${name}`));

/** Collects rows `c`, one for each currency, of other currencies than the program's, as JSON, in no order. */
function otherCurrencies({ money, counted, added }: Measures, currency: string): Sql {
  const amount = (name: string): Sql =>
    name === 'net_revenue_minor'
      ? safeSum(sql`coalesce(c.revenue_minor, 0) - coalesce(c.refunds_minor, 0)`)
      : safeSum(sql`c.${raw(name)}`);
  const pairs = money.map((name) => sql`${raw(`'${name}'`)}, ${amount(name)}`);
  const something = [...counted, ...added].map((name) => sql`nullif(c.${raw(name)}, 0)`);
  return sql`coalesce(
    json_agg(json_build_object('currency', c.currency, ${join(pairs)}))
      filter (where c.currency not in ('', ${currency}) and num_nonnulls(${join(something)}) > 0),
    '[]'
  )`;
}
