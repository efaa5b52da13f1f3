import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idsWithin } from '../programs/period.ts';
import { safeSum } from '../programs/tally.ts';
import type { Asked } from './asked.ts';
import { appliesTo, type Dimension, type Filters, filterCondition, span_lengths, summedBy } from './dimension.ts';
import type { Kind } from './kind.ts';
import { fact_measures, type Measures } from './metric.ts';
import { payoutFacts } from './payout_fact.ts';
import { type Cover, cover } from './span.ts';

const { counted, added } = fact_measures;

/**
 * A report in one statement, which sees one state: the sums of spans, what is not folded into them yet, and the facts themselves where no
 * span fits.
 */
export function reportStatement(tx: Tx, asked: Asked): Sql {
  const { program, kind, previous_windows, order } = asked;
  const { measures } = kind;
  const summed = [...measures.counted, ...measures.added].map((name) => raw(name));
  const shown = order ? sql`r.place <= ${order.limit}` : sql`true`;
  return sql`
    with facts (w, key, currency, ${join(summed)}) as (${kind.key === 'batch_id' ? payoutFacts(tx, asked) : facts(tx, asked)}),
    by_currency as materialized (
      select
        f.w, case when f.w > ${previous_windows} then 1 else 0 end as side, ${keyOf(kind)} as key, f.currency,
        ${join(summed.map((name) => sql`sum(f.${name}) as ${name}`))}
      from facts f
      ${kind.key === 'group_id' ? groupOfPartner(tx) : sql``}
      group by 1, 2, 3, 4
      having num_nonnulls(${join(summed.map((name) => sql`nullif(sum(f.${name}), 0)`))}) > 0
    ),
    by_key as (
      select c.w, c.side, c.key, ${join(metrics(measures, program.currency))}
      from by_currency c
      group by c.w, c.side, c.key
    ),
    ranked as (
      select k.*, row_number() over (partition by k.w order by ${rank(order)}) as place
      from by_key k
    )
    select
      false as is_total, r.side, r.w as nth, r.key, ${join(fields(measures, 'r'))},
      ${otherCurrencies(measures, program.currency, sql`c.w = r.w and c.key = r.key`)} as other_currencies, r.place
    from ranked r
    where ${shown}
    union all
    select
      true, s.side, 0, '', ${join(fields(measures, 't'))}, ${otherCurrencies(measures, program.currency, sql`c.side = s.side`)}, 0
    from (values (0), (1)) as s (side)
    cross join lateral (select ${join(metrics(measures, program.currency))} from by_currency c where c.side = s.side) as t
    where s.side = 1 or ${previous_windows > 0}
    order by is_total desc, side, nth, place`;
}

const rank = (order: Asked['order']): Sql =>
  order
    ? sql`k.${raw(order.metric)} ${raw(order.descending ? 'desc' : 'asc')}, k.key collate "C"`
    : sql`k.key collate "C"`;

const keyOf = ({ key }: Kind): Sql => (key === 'group_id' ? sql`coalesce(p.group_id, '')` : sql`f.key`);

const groupOfPartner = (tx: Tx): Sql =>
  sql`left join program.partner p on p.organization_id = ${tx.organization_id} and p.id = f.key`;

/** All metrics of rows `c` of by_currency: counts over all currencies, money in the program's. */
function metrics({ counted, added, derived }: Measures, currency: string): Sql[] {
  const own = (sum: string): Sql => sql`coalesce(sum(c.${raw(sum)}) filter (where c.currency = ${currency}), 0)`;
  const count = (name: string): Sql => sql`coalesce(sum(c.${raw(name)}), 0)`;
  const share = (of: Sql): Sql => sql`coalesce(round(${of}::numeric / nullif(sum(c.clicks), 0)), 0)`;
  const follows: Record<string, () => Sql> = {
    net_revenue_minor: () => sql`${own('revenue_minor')} - ${own('refunds_minor')}`,
    conversion_bps: () => share(sql`(${count('customers')} * 10000)`),
    epc_minor: () => share(own('commissions_minor')),
  };
  return [
    ...counted.map((name) => sql`${safeSum(count(name))} as ${raw(name)}`),
    ...added.map((name) => sql`${safeSum(own(name))} as ${raw(name)}`),
    ...derived.map((name) => sql`${safeSum(follows[name]?.() as Sql)} as ${raw(name)}`),
  ];
}

const fields = ({ counted, added, derived }: Measures, alias: string): Sql[] =>
  [...counted, ...added, ...derived].map((name) => raw(`${alias}.${name}`));

/** Money of rows `c` of by_currency in other currencies than the program's. */
function otherCurrencies({ money }: Measures, currency: string, where: Sql): Sql {
  const amount = (name: string): Sql =>
    name === 'net_revenue_minor'
      ? safeSum(sql`coalesce(sum(c.revenue_minor), 0) - coalesce(sum(c.refunds_minor), 0)`)
      : safeSum(sql`sum(c.${raw(name)})`);
  const pairs = money.map((name) => sql`${raw(`'${name}'`)}, ${amount(name)}`);
  return sql`(
    select coalesce(json_agg(o.money order by o.currency collate "C"), '[]')
    from (
      select c.currency, json_build_object('currency', c.currency, ${join(pairs)}) as money
      from by_currency c
      where ${where} and c.currency not in ('', ${currency})
      group by c.currency
    ) as o)`;
}

/** Rows of `w` (the window, from 1), `key`, `currency` and the sums. */
function facts(tx: Tx, asked: Asked): Sql {
  const { kind, filters, bounds, is_summed } = asked;
  const times = bounds.map((bound) => Date.parse(bound));
  const dimension = is_summed ? summedBy(kind.dimension, filters) : undefined;
  const whole = { ranges: [], edges: [{ from: times[0] as number, to: times.at(-1) as number }] };
  const covered: Cover = dimension === undefined ? whole : cover(times, span_lengths[dimension]);
  return join(
    [
      ...(covered.ranges.length > 0 && dimension !== undefined
        ? [fromTotals(tx, asked, dimension, covered), fromNotes(tx, asked, covered)]
        : []),
      ...covered.edges.map((edge) => fromFacts(tx, asked, edge)),
      nothing,
    ],
    ' union all ',
  );
}

const columns = join([...counted, ...added].map((name) => raw(name)));
/** Where a window is empty. */
const nothing = sql`
  select 0, '' collate "C", '' collate "C", ${join([
    ...counted.map(() => sql`null::bigint`),
    ...added.map(() => sql`null::numeric`),
  ])} where false`;

function fromTotals(tx: Tx, { program, kind, filters }: Asked, dimension: Dimension | '', { ranges }: Cover): Sql {
  const starts = ranges.map(({ from }) => new Date(from).toISOString());
  const ends = ranges.map(({ to }) => new Date(to).toISOString());
  return sql`
    select g.w, ${kind.dimension === '' ? sql`''` : sql`t.key`}, t.currency, ${columns}
    from unnest(
      ${ranges.map(({ window }) => window)}::integer[], ${ranges.map(({ minutes }) => minutes)}::integer[],
      ${starts}::timestamptz[], ${ends}::timestamptz[]
    ) as g (w, minutes, first, after)
    join program.report_total t on t.minutes = g.minutes and t.starts_at >= g.first and t.starts_at < g.after
    where t.organization_id = ${tx.organization_id} and t.program_id = ${program.id} and t.dimension = ${dimension}
      and ${filterCondition(tx, program.id, filters, () => sql`t.key`)}`;
}

/** What is not folded yet, but for the edges, which are read from the facts. */
function fromNotes(tx: Tx, asked: Asked, { edges }: Cover): Sql {
  const starts = edges.map(({ from }) => new Date(from).toISOString());
  const ends = edges.map(({ to }) => new Date(to).toISOString());
  const signed = [...counted, ...added].map((name) => sql`c.sign * c.${raw(name)} as ${raw(name)}`);
  return sql`
    select width_bucket(c.at, ${asked.bounds}::timestamptz[]), ${keyColumn(asked, 'c')}, c.currency, ${join(signed)}
    from program.report_change c
    where c.organization_id = ${tx.organization_id} and c.program_id = ${asked.program.id}
      and c.at >= ${asked.bounds[0]}::timestamptz and c.at < ${asked.bounds.at(-1)}::timestamptz
      and not exists (
        select from unnest(${starts}::timestamptz[], ${ends}::timestamptz[]) as e (first, after)
        where c.at >= e.first and c.at < e.after
      )
      and ${isAsked(tx, asked, 'c')}`;
}

function fromFacts(tx: Tx, asked: Asked, { from, to }: { from: number; to: number }): Sql {
  const iso = (time: number) => new Date(time).toISOString();
  const [first, after] = [sql`${iso(from)}::timestamptz`, sql`${iso(to)}::timestamptz`];
  return sql`
    select width_bucket(f.at, ${asked.bounds}::timestamptz[]), ${keyColumn(asked, 'f')}, f.currency, ${columns}
    from program.report_fact f
    where f.organization_id = ${tx.organization_id} and f.program_id = ${asked.program.id}
      and f.at >= ${first} and f.at < ${after} and (f.noun <> 'click' or (${idsWithin('clk', { from, to }, sql`f.id`)}))
      and ${isAsked(tx, asked, 'f')}`;
}

const keyColumn = ({ kind }: Asked, alias: string): Sql =>
  kind.dimension === '' ? sql`'' collate "C"` : sql`coalesce(${raw(`${alias}.${kind.dimension}`)}, '')`;

function isAsked(tx: Tx, { program, kind, filters }: Asked, alias: string): Sql {
  const names = [kind.dimension, ...(Object.keys(filters) as (keyof Filters)[])];
  const matches = filterCondition(tx, program.id, filters, (name) => raw(`${alias}.${name}`));
  return sql`${appliesTo(names, alias)} and ${matches}`;
}
