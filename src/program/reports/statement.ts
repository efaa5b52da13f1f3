import sql, { join, raw, type Sql } from 'sql-template-tag';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { safeSum } from '../programs/tally.ts';
import type { Asked } from './asked.ts';
import { facts, payoutFacts, type Summed } from './facts.ts';
import type { Measures } from './metric.ts';

declareUnique('report_slice', { report_slice_unique: null });
declareUnique('report_key', { report_key_unique: null });

/**
 * A report of all its keys.
 * @param summed the sums of the spans, where they were added up before
 */
export function reportStatement(tx: Tx, asked: Asked, summed?: Summed): Sql {
  const { kind, order } = asked;
  const measures = columnsOf(kind.measures);
  return sql`
    with facts (w, key, currency, ${measures}) as (${kind.key === 'batch_id' ? payoutFacts(tx, asked) : facts(tx, asked, summed)}),
    by_currency (w, key, currency, ${measures}) as materialized (${byCurrency(kind.measures, sql`facts`)}),
    ranked as (
      select c.w, c.key, row_number() over (partition by c.w order by ${rank(asked)}) as place
      from by_currency c
      group by c.w, c.key
    ),
    shown as materialized (
      select r.w, r.key, r.place from ranked r ${order ? sql`where r.place <= ${order.limit}` : sql``}
    ),
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

/** Rows are ranked by one metric; the others are computed of those that are shown. */
const rank = ({ order, kind, program }: Asked): Sql =>
  order
    ? sql`${metric(kind.measures, order.metric, program.currency)} ${raw(order.descending ? 'desc' : 'asc')}, c.key collate "C"`
    : sql`c.key collate "C"`;

/**
 * The rest of a statement: rows and totals.
 * @param totals what totals are the sums of; rows are those of `shown` in `by_currency`
 * @param is_whole whether the rows are all that were asked for
 */
export function answer({ program, kind, previous_windows }: Asked, totals: Sql, is_whole: Sql): Sql {
  const { measures } = kind;
  const side = sideOf('c', previous_windows);
  return sql`
    by_key as (
      select c.w, c.key, s.place, ${join(metrics(measures, program.currency))}
      from shown s
      join by_currency c on c.w = s.w and c.key = s.key
      group by c.w, c.key, s.place
    ),
    other_rows as (
      select o.w, o.key, ${in_order} as other_currencies
      from (${moneyIn(measures, program.currency, sql`shown s join by_currency c on c.w = s.w and c.key = s.key`, sql`c.w, c.key`)}) o
      group by o.w, o.key
    ),
    other_totals as (
      select o.side, ${in_order} as other_currencies
      from (${moneyIn(measures, program.currency, sql`(select c.*, ${side} as side from ${totals} c) c`, sql`c.side`)}) o
      group by o.side
    )
    select
      false as is_total, ${is_whole} as is_whole, ${sideOf('k', previous_windows)} as side, k.w as nth, k.key, ${join(fields(measures, 'k'))},
      coalesce(o.other_currencies, '[]') as other_currencies, k.place
    from by_key k
    left join other_rows o on o.w = k.w and o.key = k.key
    union all
    select
      true, ${is_whole}, s.side, 0, '', ${join(fields(measures, 't'))},
      coalesce((select o.other_currencies from other_totals o where o.side = s.side), '[]'), 0
    from (values (0), (1)) as s (side)
    cross join lateral (select ${join(metrics(measures, program.currency))} from ${totals} c where ${side} = s.side) as t
    where s.side = 1 or ${previous_windows > 0}
    order by is_total desc, side, nth, place`;
}

const in_order = sql`json_agg(o.money order by o.currency collate "C")`;

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
  };
  const sum = (counted as readonly string[]).includes(name) ? count(name) : own(name);
  return safeSum(follows[name]?.() ?? sum);
}

const fields = ({ counted, added, derived }: Measures, alias: string): Sql[] =>
  [...counted, ...added, ...derived].map((name) => raw(`${alias}.${name}`));

/** Money of rows `c` in other currencies than the program's, as JSON for each currency and what else rows are grouped by. */
function moneyIn({ money, counted, added }: Measures, currency: string, from: Sql, by: Sql): Sql {
  const amount = (name: string): Sql =>
    name === 'net_revenue_minor'
      ? safeSum(
          sql`coalesce(program.bigint_sum(c.revenue_minor), 0) - coalesce(program.bigint_sum(c.refunds_minor), 0)`,
        )
      : safeSum(sql`program.bigint_sum(c.${raw(name)})`);
  const pairs = money.map((name) => sql`${raw(`'${name}'`)}, ${amount(name)}`);
  const something = [...counted, ...added].map((name) => sql`nullif(program.bigint_sum(c.${raw(name)}), 0)`);
  return sql`
    select ${by}, c.currency, json_build_object('currency', c.currency, ${join(pairs)}) as money
    from ${from}
    where c.currency not in ('', ${currency})
    group by ${by}, c.currency
    having num_nonnulls(${join(something)}) > 0`;
}
