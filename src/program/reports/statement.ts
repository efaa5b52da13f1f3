import sql, { join, raw, type Sql } from 'sql-template-tag';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { firstId, idAfter, idsWithin } from '../programs/period.ts';
import { safeSum } from '../programs/tally.ts';
import type { Asked } from './asked.ts';
import {
  appliesTo,
  type Dimension,
  type Filters,
  filterCondition,
  hasClicks,
  span_lengths,
  summedBy,
} from './dimension.ts';
import type { Kind } from './kind.ts';
import { fact_measures, type Measures } from './metric.ts';
import { payoutFacts } from './payout_fact.ts';
import { cover, type SpanRange, type Stretch } from './span.ts';

declareUnique('report_slice', { report_slice_unique: null });
declareUnique('report_key', { report_key_unique: null });

const { counted, added } = fact_measures;

/**
 * A report in one statement, which sees one state: the sums of spans, what is not folded into them yet, and the facts themselves where no
 * span fits.
 */
export function reportStatement(tx: Tx, asked: Asked): Sql {
  const { program, kind, previous_windows, order } = asked;
  const { measures } = kind;
  const summed = [...measures.counted, ...measures.added].map((name) => raw(name));
  const sums = summed.map((name) => sql`program.bigint_sum(f.${name})`);
  const shown = order ? sql`where r.place <= ${order.limit}` : sql``;
  return sql`
    with facts (w, key, currency, ${join(summed)}) as (${kind.key === 'batch_id' ? payoutFacts(tx, asked) : facts(tx, asked)}),
    by_currency (w, key, currency, ${join(summed)}) as materialized (
      select f.w, ${keyOf(kind)}, f.currency, ${join(sums)}
      from facts f
      ${kind.key === 'group_id' ? groupOfPartner(tx) : sql``}
      group by 1, 2, 3
      having num_nonnulls(${join(sums.map((sum) => sql`nullif(${sum}, 0)`))}) > 0
    ),
    ranked as (
      select c.w, c.key, row_number() over (partition by c.w order by ${rank(asked)}) as place
      from by_currency c
      group by c.w, c.key
    ),
    shown as materialized (select r.w, r.key, r.place from ranked r ${shown}),
    by_key as (
      select c.w, c.key, r.place, ${join(metrics(measures, program.currency))}
      from shown r
      join by_currency c on c.w = r.w and c.key = r.key
      group by c.w, c.key, r.place
    ),
    others as materialized (${moneyIn(measures, program.currency, previous_windows)}),
    other_rows as (
      select o.w, o.key, json_agg(o.money order by o.currency collate "C") as other_currencies from others o where o.side is null group by o.w, o.key
    )
    select
      false as is_total, ${sideOf('k', previous_windows)} as side, k.w as nth, k.key, ${join(fields(measures, 'k'))},
      coalesce(o.other_currencies, '[]') as other_currencies, k.place
    from by_key k
    left join other_rows o on o.w = k.w and o.key = k.key
    union all
    select
      true, s.side, 0, '', ${join(fields(measures, 't'))}, 
      (select coalesce(json_agg(o.money order by o.currency collate "C"), '[]') from others o where o.side = s.side), 0
    from (values (0), (1)) as s (side)
    cross join lateral (select ${join(metrics(measures, program.currency))} from by_currency c where ${sideOf('c', previous_windows)} = s.side) as t
    where s.side = 1 or ${previous_windows > 0}
    order by is_total desc, side, nth, place`;
}

/** Rows are ranked by one metric; the others are computed of those that are shown. */
const rank = ({ order, kind, program }: Asked): Sql =>
  order
    ? sql`${metric(kind.measures, order.metric, program.currency)} ${raw(order.descending ? 'desc' : 'asc')}, c.key collate "C"`
    : sql`c.key collate "C"`;

/** 0: the period before, 1: the window itself. */
const sideOf = (alias: string, previous_windows: number): Sql =>
  sql`case when ${raw(alias)}.w > ${previous_windows} then 1 else 0 end`;

const keyOf = ({ key }: Kind): Sql => (key === 'group_id' ? sql`coalesce(p.group_id, '')` : sql`f.key`);

const groupOfPartner = (tx: Tx): Sql =>
  sql`left join program.partner p on p.organization_id = ${tx.organization_id} and p.id = f.key`;

/** All metrics of rows `c` of by_currency: counts over all currencies, money in the program's. */
const metrics = (measures: Measures, currency: string): Sql[] =>
  [...measures.counted, ...measures.added, ...measures.derived].map(
    (name) => sql`${metric(measures, name, currency)} as ${raw(name)}`,
  );

function metric({ counted }: Measures, name: string, currency: string): Sql {
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

/** Money of rows `c` of by_currency in other currencies than the program's: by window and key, and by side. */
function moneyIn({ money, counted, added }: Measures, currency: string, previous_windows: number): Sql {
  const amount = (name: string): Sql =>
    name === 'net_revenue_minor'
      ? safeSum(
          sql`coalesce(program.bigint_sum(c.revenue_minor), 0) - coalesce(program.bigint_sum(c.refunds_minor), 0)`,
        )
      : safeSum(sql`program.bigint_sum(c.${raw(name)})`);
  const pairs = money.map((name) => sql`${raw(`'${name}'`)}, ${amount(name)}`);
  const something = [...counted, ...added].map((name) => sql`nullif(program.bigint_sum(c.${raw(name)}), 0)`);
  return sql`
    select c.w, c.key, c.side, c.currency, json_build_object('currency', c.currency, ${join(pairs)}) as money
    from (
      select b.*, ${sideOf('b', previous_windows)} as side from by_currency b where b.currency not in ('', ${currency})
    ) as c
    group by grouping sets ((c.w, c.key, c.currency), (c.side, c.currency))
    having num_nonnulls(${join(something)}) > 0`;
}

/** Rows of `w` (the window, from 1), `key`, `currency` and the sums. */
function facts(tx: Tx, asked: Asked): Sql {
  const { kind, filters, bounds, is_summed } = asked;
  const times = bounds.map((bound) => Date.parse(bound));
  const dimension = is_summed ? summedBy(kind.dimension, filters) : undefined;
  const whole = { from: times[0] as number, to: times.at(-1) as number };
  if (dimension === undefined) return join([fromFacts(tx, asked, whole), nothing], ' union all ');
  const { ranges, edges } = cover(times, span_lengths[dimension]);
  if (ranges.length === 0) return join([fromFacts(tx, asked, whole), nothing], ' union all ');
  return join(
    [
      fromTotals(tx, asked, dimension, ranges),
      fromNotes(tx, asked, edges),
      ...edges.map((edge) => fromEdge(tx, asked, edge)),
    ],
    ' union all ',
  );
}

const columns = join([...counted, ...added].map((name) => sql`${raw(name)}::bigint`));
/** An empty window has no facts, and a statement needs a part. */
const nothing = sql`
  select 0, '' collate "C", '' collate "C", ${join([
    ...counted.map(() => sql`null::bigint`),
    ...added.map(() => sql`null::bigint`),
  ])} where false`;

/** Sums are added up by the numbers of their keys, and few of them are left when these are read. */
function fromTotals(tx: Tx, asked: Asked, dimension: Dimension | '', ranges: SpanRange[]): Sql {
  const { program, kind, filters } = asked;
  const of = sql`organization_id = ${tx.organization_id} and`;
  const is_keyed = kind.dimension !== '';
  const matches = filterCondition(tx, program.id, filters, () => sql`k.key`);
  const keys = sql`program.report_key k where k.${of} k.program_id = ${program.id} and k.dimension = ${dimension} and ${matches}`;
  const condition = Object.keys(filters).length > 0 ? sql`t.key_id in (select k.id from ${keys})` : sql`true`;
  const summed = sql`
    select t.w, ${is_keyed ? sql`t.key_id` : sql`0 as key_id`}, t.currency, ${join(total_sums)}
    from (${join(
      ranges.map((range) => spansOf(tx, asked, dimension, range, condition)),
      ' union all ',
    )}) t
    group by 1, 2, 3`;
  if (!is_keyed) return sql`select s.w, '', s.currency, ${join(total_names)} from (${summed}) s`;
  return sql`
    select s.w, k.key, s.currency, ${join(total_names)}
    from (${summed}) s
    join program.report_key k on k.id = s.key_id
    where k.${of} k.program_id = ${program.id} and k.dimension = ${dimension}`;
}

const total_names = [...counted, ...added].map((name) => sql`s.${raw(name)}`);
const total_sums = [...counted, ...added].map(
  (name) => sql`program.bigint_sum(t.${raw(name)}::bigint) as ${raw(name)}`,
);

/** The bounds are constants, so that Postgres knows how few rows there are between them. */
function spansOf(tx: Tx, { program, bounds }: Asked, dimension: string, range: SpanRange, condition: Sql): Sql {
  const windows = bounds.map((bound) => Math.ceil(Date.parse(bound) / minute_ms));
  return sql`
    select width_bucket(t.starts_in, ${windows}::integer[]) as w, t.*
    from program.report_total t
    where t.organization_id = ${tx.organization_id} and t.slice_id = (
        select s.id from program.report_slice s
        where s.organization_id = ${tx.organization_id} and s.program_id = ${program.id} and s.dimension = ${dimension}
          and s.minutes = ${range.minutes}
      )
      and t.starts_in >= ${range.from / minute_ms} and t.starts_in < ${range.to / minute_ms} and ${condition}`;
}

const minute_ms = 60_000;
const isoOf = (time: number): string => new Date(time).toISOString();

/** What is not folded yet, but for the edges, which are read from the facts. */
function fromNotes(tx: Tx, asked: Asked, edges: Stretch[]): Sql {
  const starts = edges.map(({ from }) => isoOf(from));
  const ends = edges.map(({ to }) => isoOf(to));
  const signed = [...counted, ...added].map((name) => sql`(c.sign * c.${raw(name)})::bigint as ${raw(name)}`);
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

function fromFacts(tx: Tx, asked: Asked, { from, to }: Stretch): Sql {
  const [first, after] = [sql`${isoOf(from)}::timestamptz`, sql`${isoOf(to)}::timestamptz`];
  return sql`
    select width_bucket(f.at, ${asked.bounds}::timestamptz[]), ${keyColumn(asked, 'f')}, f.currency, ${columns}
    from program.report_fact f
    where f.organization_id = ${tx.organization_id} and f.program_id = ${asked.program.id}
      and f.at >= ${first} and f.at < ${after} and (f.noun <> 'click' or (${idsWithin('clk', { from, to }, sql`f.id`)}))
      and ${isAsked(tx, asked, 'f')}`;
}

/** The facts of some hours. */
function fromEdge(tx: Tx, asked: Asked, { from, to }: Stretch): Sql {
  const { program, kind, filters, bounds } = asked;
  return sql`
    select width_bucket(f.at, ${bounds}::timestamptz[]), ${keyColumn(asked, 'f')}, f.currency, ${columns}
    from program.report_facts_between(
      ${tx.organization_id}, ${program.id}, ${isoOf(from)}::timestamptz, ${isoOf(to)}::timestamptz, ${firstId('clk', from)},
      ${idAfter('clk', to)}, ${hasClicks([kind.dimension, ...namesOf(filters)])}::boolean
    ) f
    where ${isAsked(tx, asked, 'f')}`;
}

const namesOf = (filters: Filters): (keyof Filters)[] => Object.keys(filters) as (keyof Filters)[];

const keyColumn = ({ kind }: Asked, alias: string): Sql =>
  kind.dimension === '' ? sql`'' collate "C"` : sql`coalesce(${raw(`${alias}.${kind.dimension}`)}, '')`;

function isAsked(tx: Tx, { program, kind, filters }: Asked, alias: string): Sql {
  const names = [kind.dimension, ...namesOf(filters)];
  const matches = filterCondition(tx, program.id, filters, (name) => raw(`${alias}.${name}`));
  return sql`${appliesTo(names, alias)} and ${matches}`;
}
