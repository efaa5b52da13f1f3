/**
 * The sums of many keys, added up from blocks: the sums of a span of time in one row, which is read many times faster than a row for each key.
 * Spans whose sums have changed since they were packed are read from the sums themselves: see sql/live/program/report_block.sql.
 */
import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Asked } from '../asked.ts';
import { type Dimension, quarter_minutes } from '../dimension.ts';
import { coverOf, levelsOf, windowOf } from '../facts.ts';
import type { Metric } from '../metric.ts';
import { type Cover, type Finer, minute_ms } from '../span.ts';
import { type KeyNumbers, numbersFor, SparseNumbers } from './key_numbers.ts';
import { KeySums, type Row } from './key_sums.ts';
import { type ListedBlock, readBlocks } from './values.ts';

/** More rows of spans that have changed are better added up by Postgres. */
const most_unpacked_keys = 100_000;
/** What is reckoned of a span that was never packed. */
const unpacked_keys = 10_000;

interface Span {
  minutes: number;
  slice_id: number;
  starts_in: number;
}

/** A span and one of its blocks, if it has any. */
type Listed = Span & { key_count: number; has_changed: boolean } & (ListedBlock | { currency: null });

/** A cover of the windows whose spans can be added up here. */
export interface Packed {
  dimension: Dimension;
  covered: Cover;
  listed: Listed[];
}

/** Quarters of days have no sums but blocks: where one of them has changed, the cover does without those of the last bound, or of all. */
const finer: (Finer | undefined)[] = [
  { minutes: quarter_minutes, of: 'all' },
  { minutes: quarter_minutes, of: 'all but the last' },
  undefined,
];

/**
 * The cover of a dimension's windows, and the blocks of its spans.
 * @returns undefined where Postgres is to add up the sums: much of them has changed since it was packed
 */
export async function packedCover(tx: Tx, asked: Asked, dimension: Dimension): Promise<Packed | undefined> {
  for (const one of finer) {
    const covered = coverOf(asked, dimension, one);
    if (!covered) continue;
    const listed = await listSpans(tx, spansOf(asked, dimension, covered));
    const changed = listed.filter(({ has_changed }) => has_changed);
    if (changed.some(({ minutes }) => minutes === quarter_minutes)) continue;
    const changed_keys = changed.reduce((sum, { key_count }) => sum + (key_count || unpacked_keys), 0);
    return changed_keys > most_unpacked_keys ? undefined : { dimension, covered, listed };
  }
  return undefined;
}

/**
 * Adds up all keys over the spans of a cover.
 * @param names the measures to add up
 * @param currency the only one to add up; undefined: all
 * @param numbers under which keys are added up; undefined: each under its own
 * @param finds_all whether keys are found, too, that have something else
 * @returns undefined where a sum is beyond the integers that a number holds
 */
export async function keySums(
  tx: Tx,
  { covered, listed }: Packed,
  {
    names,
    currency,
    numbers,
    finds_all = false,
  }: { names: Metric[]; currency?: string | undefined; numbers?: KeyNumbers; finds_all?: boolean },
): Promise<KeySums | undefined> {
  const all = listed.filter(isBlock);
  const blocks = all.filter((one) => currency === undefined || one.currency === currency);
  const sums = new KeySums(names, numbers ?? numbersFor(finds_all ? all : blocks, names.length));
  const windowAt = windowsIn(covered);
  for await (const { block, keys, values } of readBlocks(tx, blocks, names))
    sums.addBlock(windowAt(block), block, keys, values);
  if (finds_all)
    for await (const { block, keys } of readBlocks(tx, all, [])) sums.findBlock(windowAt(block), block, keys);
  const rows = await readTotals(tx, covered, changedOf(listed), { names, currency: finds_all ? undefined : currency });
  for (const row of rows) sums.add(row);
  return sums.is_exact ? sums : undefined;
}

/**
 * Adds up some keys of each window over the spans of a cover.
 * @returns undefined where a sum is beyond the integers that a number holds
 */
export async function chosenSums(
  tx: Tx,
  { covered, listed }: Packed,
  names: Metric[],
  chosen: { w: number; id: number }[],
): Promise<KeySums | undefined> {
  const by_window = Map.groupBy(chosen, ({ w }) => w);
  const ids = covered.bounds.map((_, w) => (by_window.get(w) ?? []).map(({ id }) => id).toSorted((a, b) => a - b));
  const sums = new KeySums(names, new SparseNumbers());
  const windowAt = windowsIn(covered);
  for await (const { block, keys, values } of readBlocks(tx, listed.filter(isBlock), names)) {
    const w = windowAt(block);
    let place = 0;
    for (const id of ids[w] as number[]) {
      const distance = id - block.first_key;
      place = placeOf(distance, keys, place);
      if (keys[place] === distance) sums.addOne({ w, id, block }, values, place);
    }
  }
  const rows = await readTotals(tx, covered, changedOf(listed), { names, ids: ids.flat() });
  for (const row of rows) sums.add(row);
  return sums.is_exact ? sums : undefined;
}

/** Spans whose sums have changed since they were packed. Quarters of days have no sums. */
const changedOf = (listed: Listed[]): Listed[] =>
  listed.filter((one) => !isBlock(one) && one.minutes !== quarter_minutes);

/**
 * Where the first key is that is not below a distance, from a place on: in steps that double, then in halves. Few keys of a block are looked for,
 * and a look at each of the others would take most of the time of a report.
 * @param keys ascending
 * @returns the number of keys where all are below
 */
function placeOf(distance: number, keys: Int32Array, from: number): number {
  let step = 1;
  let first = from;
  while (first + step <= keys.length && (keys[first + step - 1] as number) < distance) {
    first += step;
    step *= 2;
  }
  let after = Math.min(first + step - 1, keys.length);
  while (first < after) {
    const middle = (first + after) >>> 1;
    if ((keys[middle] as number) < distance) first = middle + 1;
    else after = middle;
  }
  return first;
}

/** In which window a span is. */
function windowsIn({ bounds }: Cover): (span: { starts_in: number }) => number {
  const starts = bounds.map((bound) => bound / minute_ms);
  return ({ starts_in }) => starts.findLastIndex((start) => start <= starts_in) + 1;
}

const isBlock = (one: Listed): one is Listed & ListedBlock => !one.has_changed && one.currency !== null;

function spansOf({ slices }: Asked, dimension: Dimension, { ranges }: Cover): Span[] {
  return levelsOf(ranges).flatMap((level) => {
    const { minutes } = level[0] as { minutes: number };
    const slice_id = slices[`${dimension} ${minutes}`];
    if (slice_id === undefined) return [];
    return level.flatMap(({ from, to }) =>
      Array.from({ length: (to - from) / minute_ms / minutes }, (_, nth) => ({
        ...{ minutes, slice_id },
        starts_in: from / minute_ms + nth * minutes,
      })),
    );
  });
}

async function listSpans(tx: Tx, spans: Span[]): Promise<Listed[]> {
  const minutes = new Map(spans.map((span) => [span.slice_id, span.minutes]));
  const listed = await tx.all<Listed>(sql`
    select
      s.slice_id, s.starts_in, b.currency, b.first_key, b.last_key, coalesce(b.key_count, 0) as key_count, encode(b.hash, 'hex') as hash,
      u.slice_id is not null as has_changed
    from ${spanRows(spans)}
    left join program.report_block b
      on b.organization_id = ${tx.organization_id} and b.slice_id = s.slice_id and b.starts_in = s.starts_in
    left join program.report_unpacked u
      on u.organization_id = ${tx.organization_id} and u.slice_id = s.slice_id and u.starts_in = s.starts_in`);
  return listed.map((one) => ({ ...one, minutes: minutes.get(one.slice_id) as number }));
}

const spanRows = (spans: Span[]): Sql => sql`unnest(
  ${spans.map(({ slice_id }) => slice_id)}::integer[], ${spans.map(({ starts_in }) => starts_in)}::integer[]
) as s (slice_id, starts_in)`;

function readTotals(
  tx: Tx,
  covered: Cover,
  spans: Span[],
  { names, currency, ids }: { names: Metric[]; currency?: string | undefined; ids?: number[] },
): Promise<Row[]> {
  if (spans.length === 0) return Promise.resolve([]);
  const sums = names.map((name) => sql`program.bigint_sum(t.${raw(name)}::bigint) as ${raw(name)}`);
  return tx.all<Row>(sql`
    select ${windowOf(covered)} as w, t.key_id as id, t.currency, ${join(sums)}
    from (select distinct s.slice_id, s.starts_in from ${spanRows(spans)}) s
    cross join lateral (
      select * from program.report_total t
      where t.organization_id = ${tx.organization_id} and t.slice_id = s.slice_id and t.starts_in = s.starts_in
        and (${currency ?? null}::text is null or t.currency = ${currency ?? null})
        and (${ids ?? null}::bigint[] is null or t.key_id = any(${ids ?? null}::bigint[]))
    ) t
    group by 1, 2, 3`);
}
