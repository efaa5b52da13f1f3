/** Builds the rows that a report adds up: `w` (the window, from 1), `key`, `currency` and the measures. */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { firstId, idAfter, idsWithin } from '../programs/period.ts';
import type { Asked } from './asked.ts';
import { type Dimension, type Filters, filterCondition, nounsOf, span_lengths, summedBy } from './dimension.ts';
import { fact_columns } from './metric.ts';
import { type Cover, type CoverByDays, cover, coverByDays, type Edge, minute_ms, type SpanRange } from './span.ts';

/** Rows of w, key, currency and the measures: what the spans of a cover come to. */
interface Summed {
  covered: Cover;
  rows: Sql;
}

/** The sums of spans, what is not folded into them yet, and the facts themselves where no span fits. */
export function facts(tx: Tx, asked: Asked): Sql {
  const dimension = asked.is_summed ? summedBy(asked.kind.dimension, asked.filters) : undefined;
  const spans = dimension === undefined ? undefined : spansOf(tx, asked, dimension);
  if (dimension === undefined || spans === undefined) return fromFacts(tx, asked);
  const { covered, rows } = spans;
  const loose = [fromNotes(tx, asked, covered), ...covered.edges.map((edge) => fromEdge(tx, asked, dimension, edge))];
  return sql`${rows} union all ${byGroup(tx, asked, join(loose, ' union all '))}`;
}

/** The spans that cover the windows, or undefined where they do not help. */
function spansOf(tx: Tx, asked: Asked, dimension: Dimension | ''): Summed | undefined {
  if (dimension === '') {
    const covered = coverByDays(timesOf(asked), span_lengths['']);
    return covered && { covered, rows: fromDays(tx, asked, covered) };
  }
  const covered = coverOf(asked, dimension);
  return covered && { covered, rows: fromTotals(tx, asked, dimension, covered) };
}

/** Rows of w, key, currency and the measures: those by partner, by the groups of today where these are asked for. */
function byGroup(tx: Tx, { kind }: Asked, rows: Sql): Sql {
  if (kind.key !== 'group_id') return rows;
  const measures = join(fact_columns.map((name) => raw(name)));
  return sql`
    select l.w, coalesce(m.group_id, ''), l.currency, ${measures}
    from (${rows}) as l (w, key, currency, ${measures})
    left join program.partner m on m.organization_id = ${tx.organization_id} and m.id = l.key`;
}

/** The spans of a dimension that cover the windows, or undefined where they do not help. */
export const coverOf = (asked: Asked, dimension: Dimension | ''): Cover | undefined =>
  cover(timesOf(asked), span_lengths[dimension]);

const timesOf = ({ bounds }: Asked): number[] => bounds.map((bound) => Date.parse(bound));

/** Days are added up by the windows that they are nearest to, and what is moved once more where it belongs and once less where it does not. */
function fromDays(tx: Tx, asked: Asked, { bounds, days, ranges, moved }: CoverByDays): Sql {
  const summed = levelsOf(ranges).map(
    (level) => sql`
      select ${placeIn(days)}, '', t.currency, ${join(total_sums)}
      from program.report_total t
      where ${isIn(tx, asked, '', level)}
      group by 1, 2, 3`,
  );
  const signed = fact_columns.map((name) => sql`s.sign * m.${raw(name)}`);
  const corrected = levelsOf(moved).map(
    (level) => sql`
      select s.w, '', m.currency, ${join(signed)}
      from (
        select ${placeIn(bounds)} as belongs_in, ${placeIn(days)} as counted_in, t.currency, ${join(total_sums)}
        from program.report_total t
        where ${isIn(tx, asked, '', level)}
        group by 1, 2, 3
      ) m
      cross join lateral (values (m.belongs_in, 1), (m.counted_in, -1)) as s (w, sign)
      where s.w between 1 and ${bounds.length - 1}`,
  );
  return join([...summed, ...corrected], ' union all ');
}

/** Sums are added up by the numbers of their keys, and few of them are left when these are read. Groups are few themselves. */
function fromTotals(tx: Tx, asked: Asked, dimension: Dimension, covered: Cover): Sql {
  const { program, kind, filters } = asked;
  const keys = (and: Sql): Sql => sql`${isKeyOf(tx, asked, dimension)} and ${and}`;
  const matches = keys(filterCondition(tx, program.id, filters, () => sql`k.key`));
  const is_filtered = Object.keys(filters).length > 0;
  const condition = is_filtered
    ? sql`t.key_id = any(array(select k.id from program.report_key k where ${matches}))`
    : sql`true`;
  const spans = spanRows(tx, asked, dimension, covered, condition);
  if (kind.dimension === '')
    return sql`select t.w, '', t.currency, ${join(total_sums)} from (${spans}) t group by 1, 2, 3`;
  if (kind.key === 'group_id')
    return sql`
      select t.w, g.key, t.currency, ${join(total_sums)}
      from (${spans}) t
      join (
        select k.id, coalesce(m.group_id, '') as key
        from program.report_key k
        left join program.partner m on m.organization_id = ${tx.organization_id} and m.id = k.key
        where ${matches}
        offset 0
      ) g on g.id = t.key_id
      group by 1, 2, 3`;
  return sql`
    select s.w, k.key, s.currency, ${join(total_names)}
    from (select t.w, t.key_id, t.currency, ${join(total_sums)} from (${spans}) t group by 1, 2, 3) s
    join program.report_key k on ${keys(sql`k.id = s.key_id`)}`;
}

/** The rows of report_total of the spans of a cover, each with its window `w`. @param condition on rows `t` */
export const spanRows = (tx: Tx, asked: Asked, dimension: Dimension | '', covered: Cover, condition: Sql): Sql =>
  join(
    levelsOf(covered.ranges).map(
      (level) => sql`
        select ${windowOf(covered)} as w, t.*
        from program.report_total t
        where ${isIn(tx, asked, dimension, level)} and ${condition}`,
    ),
    ' union all ',
  );

/** Selects the rows `k` of report_key that are keys of a dimension. */
export const isKeyOf = (tx: Tx, { program }: Asked, dimension: Dimension | ''): Sql =>
  sql`k.organization_id = ${tx.organization_id} and k.program_id = ${program.id} and k.dimension = ${dimension}`;

const total_names = fact_columns.map((name) => sql`s.${raw(name)}`);
const total_sums = fact_columns.map((name) => sql`program.bigint_sum(t.${raw(name)}::bigint) as ${raw(name)}`);

/** The window of rows `t` of report_total. There are many, and most reports have one window or two. */
function windowOf({ bounds }: Cover): Sql {
  if (bounds.length === 2) return sql`1`;
  if (bounds.length === 3) return sql`case when t.starts_in < ${(bounds[1] as number) / minute_ms} then 1 else 2 end`;
  return placeIn(bounds);
}

/** Between which bounds rows `t` of report_total are: 0 is before the first. */
const placeIn = (bounds: number[]): Sql =>
  sql`width_bucket(t.starts_in, ${bounds.map((bound) => bound / minute_ms)}::integer[])`;

/** The ranges of each length of spans: they are read together. */
const levelsOf = (ranges: SpanRange[]): SpanRange[][] => [...Map.groupBy(ranges, ({ minutes }) => minutes).values()];

/** Selects the rows `t` of report_total that are of these spans. The bounds are constants, so that Postgres knows how few rows there are. */
function isIn(tx: Tx, asked: Asked, dimension: Dimension | '', level: SpanRange[]): Sql {
  const { minutes } = level[0] as SpanRange;
  return sql`t.organization_id = ${tx.organization_id} and t.slice_id = ${sliceOf(tx, asked, dimension, minutes)} and ${startsIn(level, minutes)}`;
}

/** A slice is there from the first fold on, and keeps its number. */
function sliceOf(tx: Tx, { program, slices }: Asked, dimension: Dimension | '', minutes: number): Sql {
  const known = slices[`${dimension} ${minutes}`];
  if (known !== undefined) return sql`${known}`;
  return sql`(
    select s.id from program.report_slice s
    where s.organization_id = ${tx.organization_id} and s.program_id = ${program.id} and s.dimension = ${dimension} and s.minutes = ${minutes}
  )`;
}

/** The number of spans up to which they are looked up one by one; all are read where they are in more ranges. */
const most_starts = 32;

function startsIn(level: SpanRange[], minutes: number): Sql {
  const of = level.map(({ from, to }) => ({ first: from / minute_ms, after: to / minute_ms }));
  const starts = of.flatMap(({ first, after }) =>
    Array.from({ length: (after - first) / minutes }, (_, nth) => first + nth * minutes),
  );
  if (starts.length <= most_starts || of.length > most_starts) return sql`t.starts_in = any(${starts}::integer[])`;
  const ranges = of.map(({ first, after }) => sql`t.starts_in >= ${first} and t.starts_in < ${after}`);
  return sql`(${join(ranges, ' or ')})`;
}

const isoOf = (time: number): string => new Date(time).toISOString();

/** Builds the rows that are not folded yet. */
export function fromNotes(tx: Tx, asked: Asked, { bounds }: Cover): Sql {
  const ends = bounds.map(isoOf);
  const signed = fact_columns.map((name) => sql`(c.sign * c.${raw(name)})::bigint as ${raw(name)}`);
  return sql`
    select width_bucket(c.at, ${ends}::timestamptz[]), ${keyOf(asked, raw(`c.${asked.kind.dimension}`))}, c.currency, ${join(signed)}
    from program.unfolded_facts(${tx.organization_id}) c
    where c.program_id = ${asked.program.id}
      and c.at >= ${ends[0]}::timestamptz and c.at < ${ends.at(-1)}::timestamptz
      and ${isAsked(tx, asked, 'c')}`;
}

function fromFacts(tx: Tx, asked: Asked): Sql {
  const { program, kind, bounds } = asked;
  const [first, after] = [bounds[0] as string, bounds.at(-1) as string];
  const ids = idsWithin('clk', { from: Date.parse(first), to: Date.parse(after) }, sql`f.id`);
  return byGroup(
    tx,
    asked,
    sql`
    select
      width_bucket(f.at, ${bounds}::timestamptz[]), ${keyOf(asked, raw(`f.${kind.dimension}`))}, f.currency,
      ${join(fact_columns.map((name) => sql`f.${raw(name)}::bigint as ${raw(name)}`))}
    from program.report_fact f
    where f.organization_id = ${tx.organization_id} and f.program_id = ${program.id}
      and f.at >= ${first}::timestamptz and f.at < ${after}::timestamptz and (f.noun <> 'click' or (${ids}))
      and ${isAsked(tx, asked, 'f')}`,
  );
}

/** The facts of some hours, which are counted in the window before them and not in the one behind them, or the other way round. */
export function fromEdge(tx: Tx, asked: Asked, dimension: Dimension | '', { from, to, signs }: Edge): Sql {
  const { program, kind, filters } = asked;
  const nouns = nounsOf([kind.dimension, ...namesOf(filters)]);
  const key = keyOf(asked, sql`f.key collate "C"`);
  const signed = fact_columns.map((name) => sql`s.sign * f.${raw(name)}`);
  return sql`
    select s.w, ${key}, f.currency collate "C", ${join(signed)}
    from ${raw(`program.report_sums_by_${dimension || 'all'}`)}(
      ${tx.organization_id}, ${program.id}, ${isoOf(from)}::timestamptz, ${isoOf(to)}::timestamptz,
      ${firstId('clk', from)}, ${idAfter('clk', to)}, ${nouns}::text[]
    ) f
    cross join (values ${join(signs.map(({ window, sign }) => sql`(${window}::integer, ${sign}::bigint)`))}) as s (w, sign)
    where ${filterCondition(tx, program.id, filters, () => sql`f.key`)}`;
}

const namesOf = (filters: Filters): (keyof Filters)[] => Object.keys(filters) as (keyof Filters)[];

/** A row's key, of a fact's or a sum's. */
const keyOf = ({ kind }: Asked, key: Sql): Sql =>
  kind.dimension === '' ? sql`'' collate "C"` : sql`coalesce(${key}, '')`;

function isAsked(tx: Tx, { program, kind, filters }: Asked, alias: string): Sql {
  const names = [kind.dimension, ...namesOf(filters)];
  const matches = filterCondition(tx, program.id, filters, (name) => raw(`${alias}.${name}`));
  return sql`${raw(`${alias}.noun`)} = any(${nounsOf(names)}::text[]) and ${matches}`;
}

/** Payouts are few: they are read as they are. Rows of `w`, key (the batch), currency and the measures. */
export function payoutFacts(tx: Tx, { program, filters, bounds }: Asked): Sql {
  const amountIn = (status: string): Sql => sql`case when p.status = ${status} then p.amount_minor end`;
  const columns = [
    ...[amountIn('pending'), amountIn('processing')],
    sql`case when p.status = 'paid' and p.livemode then p.amount_minor end`,
    ...[amountIn('failed'), sql`p.fee_minor`],
  ];
  return sql`
    select width_bucket(p.created_at, ${bounds}::timestamptz[]), p.batch_id, p.currency, 1::bigint, ${join(columns)}
    from program.payout p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${program.id} and p.deleted_at is null
      and p.created_at >= ${bounds[0]}::timestamptz and p.created_at < ${bounds.at(-1)}::timestamptz
      and ${filterCondition(tx, program.id, filters, (name) => raw(`p.${name}`))}`;
}
