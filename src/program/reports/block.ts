/**
 * The sums of many keys, added up from blocks: the sums of a span of time in one row, which is read many times faster than a row for each key.
 * Spans whose sums have changed since they were packed are read from the sums themselves: see sql/live/program/report_block.sql.
 */
import { endianness } from 'node:os';
import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Asked } from './asked.ts';
import { type Dimension, quarter_minutes } from './dimension.ts';
import { coverOf, levelsOf, windowOf } from './facts.ts';
import type { Metric } from './metric.ts';
import { type Cover, type Finer, minute_ms } from './span.ts';

/** Keys that are fetched at a time: so many are in memory twice, while Postgres sends the next ones. */
const keys_of_portion = 150_000;
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
interface Listed extends Span {
  currency: string | null;
  first_key: number;
  last_key: number;
  key_count: number;
  has_changed: boolean;
}

/** A cover of the windows whose spans can be added up here. */
export interface Packed {
  dimension: Dimension;
  covered: Cover;
  listed: Listed[];
}

type Block = Span & { currency: string; first_key: number; width: 2 | 4 | 8; keys: Buffer } & Record<
    string,
    Buffer | null
  >;

/** A row of report_total, or of what is in no sum yet. */
type Row = { w: number; id: number; currency: string } & Record<string, unknown>;

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
 * @param minutes the length of the only spans to add up; undefined: all
 * @returns undefined where a sum is beyond the integers that a number holds
 */
export async function keySums(
  tx: Tx,
  { covered, listed }: Packed,
  { names, currency, minutes }: { names: Metric[]; currency?: string | undefined; minutes?: number },
): Promise<KeySums | undefined> {
  const asked = listed.filter((one) => minutes === undefined || one.minutes === minutes);
  const blocks = asked.filter(isBlock).filter((one) => currency === undefined || one.currency === currency);
  const sums = new KeySums(names, numbersFor(blocks, names));
  const starts = covered.bounds.map((bound) => bound / minute_ms);
  const windowAt = (starts_in: number): number => starts.findLastIndex((start) => start <= starts_in) + 1;
  for await (const some of fetchBlocks(tx, blocks, names))
    for (const block of some) sums.addBlock(windowAt(block.starts_in), block);
  const others = asked.filter((one) => !isBlock(one) && one.minutes !== quarter_minutes);
  for (const row of await readTotals(tx, covered, others, { names, currency })) sums.add(row);
  return sums.is_exact ? sums : undefined;
}

type ListedBlock = Listed & { currency: string };
const isBlock = (one: Listed): one is ListedBlock => !one.has_changed && one.currency !== null;

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
    select s.slice_id, s.starts_in, b.currency, b.first_key, b.last_key, coalesce(b.key_count, 0) as key_count, u.slice_id is not null as has_changed
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

/** Postgres sends the next blocks while those before are added up. */
async function* fetchBlocks(tx: Tx, listed: ListedBlock[], names: Metric[]): AsyncGenerator<Block[]> {
  let next: Promise<Block[]> | undefined;
  for (const portion of portionsOf(listed)) {
    const fetched = tx.all<Block>(sql`
      select b.starts_in, b.currency, b.first_key, b.width, b.keys, ${columnsOf('b', names)}
      from unnest(
        ${portion.map(({ slice_id }) => slice_id)}::integer[], ${portion.map(({ starts_in }) => starts_in)}::integer[],
        ${portion.map(({ currency }) => currency)}::text[]
      ) as s (slice_id, starts_in, currency)
      join program.report_block b
        on b.organization_id = ${tx.organization_id} and b.slice_id = s.slice_id and b.starts_in = s.starts_in and b.currency = s.currency`);
    // Its failure is thrown where it is awaited.
    fetched.catch(() => {});
    if (next) yield await next;
    next = fetched;
  }
  if (next) yield await next;
}

function portionsOf(listed: ListedBlock[]): ListedBlock[][] {
  const portions: ListedBlock[][] = [];
  let keys = Number.POSITIVE_INFINITY;
  for (const one of listed) {
    if (keys + one.key_count > keys_of_portion) {
      portions.push([]);
      keys = 0;
    }
    portions.at(-1)?.push(one);
    keys += one.key_count;
  }
  return portions;
}

const columnsOf = (alias: string, names: Metric[]): Sql => join(names.map((name) => raw(`${alias}.${name}`)));

function readTotals(
  tx: Tx,
  covered: Cover,
  spans: Span[],
  { names, currency }: { names: Metric[]; currency?: string | undefined },
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
    ) t
    group by 1, 2, 3`);
}

/** Of a window and a currency: for each measure the sums, in the order of the keys' numbers. */
interface Cell {
  w: number;
  currency: string;
  columns: Float64Array[];
}

/** Sums by window, key and currency. */
export class KeySums {
  readonly keys: KeyNumbers;
  readonly cells: Cell[] = [];
  /** False where a sum is beyond the integers that a number holds. */
  is_exact = true;
  readonly #names: Metric[];

  constructor(names: Metric[], keys: KeyNumbers) {
    this.#names = names;
    this.keys = keys;
  }

  addBlock(w: number, { currency, first_key, width, keys, ...columns }: Block): void {
    const places = this.keys.ofAll(first_key, integersOf(keys, 4) as Int32Array);
    const cell = this.#cell(w, currency);
    for (const [nth, name] of this.#names.entries()) {
      const packed = columns[name] as Buffer | null;
      if (packed) this.#addAll(cell.columns[nth] as Float64Array, places, integersOf(packed, width));
    }
  }

  add(row: Row): void {
    const place = Int32Array.of(this.keys.of(row.id));
    const cell = this.#cell(row.w, row.currency);
    for (const [nth, name] of this.#names.entries())
      this.#addAll(cell.columns[nth] as Float64Array, place, Float64Array.of((row[name] as number | null) ?? 0));
  }

  /** The sums of a measure in a window: of one currency, or of all. */
  column(w: number, name: Metric, currency?: string): Float64Array {
    const nth = this.#names.indexOf(name);
    const found = new Float64Array(this.keys.size);
    for (const cell of this.cells) {
      if (cell.w !== w || (currency !== undefined && cell.currency !== currency)) continue;
      const column = cell.columns[nth] as Float64Array;
      for (let place = 0; place < Math.min(column.length, found.length); place++)
        found[place] = (found[place] as number) + (column[place] as number);
    }
    return found;
  }

  #addAll(sums: Float64Array, places: Int32Array, values: Int32Array | Float64Array): void {
    for (let nth = 0; nth < places.length; nth++) {
      const place = places[nth] as number;
      const sum = (sums[place] as number) + (values[nth] as number);
      if (sum > Number.MAX_SAFE_INTEGER || sum < Number.MIN_SAFE_INTEGER) this.is_exact = false;
      sums[place] = sum;
    }
  }

  /** With room for all keys that there are. */
  #cell(w: number, currency: string): Cell {
    let cell = this.cells.find((one) => one.w === w && one.currency === currency);
    if (!cell) {
      cell = { w, currency, columns: this.#names.map(() => new Float64Array(0)) };
      this.cells.push(cell);
    }
    cell.columns = cell.columns.map((column) => {
      if (column.length >= this.keys.size) return column;
      const grown = new Float64Array(Math.max(this.keys.size, 2 * column.length));
      grown.set(column);
      return grown;
    });
    return cell;
  }
}

/** Numbers for keys, from 0, by which their sums are found. */
interface KeyNumbers {
  /** One more than the highest. */
  readonly size: number;
  of(id: number): number;
  /** The numbers of keys that are given by what they are more than the first. */
  ofAll(first: number, distances: Int32Array): Int32Array;
  /** The key with a number, if one has it. */
  at(number: number): number | undefined;
}

/** So many sums of a window and a currency take 8 MiB. */
const most_dense = 1 << 20;

function numbersFor(blocks: ListedBlock[], names: Metric[]): KeyNumbers {
  const first = blocks.reduce((least, { first_key }) => Math.min(least, first_key), Number.POSITIVE_INFINITY);
  const last = blocks.reduce((most, { last_key }) => Math.max(most, last_key), 0);
  return (last - first) * names.length < most_dense ? new DenseNumbers(first, last) : new SparseNumbers();
}

/** Keys that are close to each other keep their distances: much faster than to look each up. Others come behind them. */
class DenseNumbers implements KeyNumbers {
  readonly #first: number;
  readonly #count: number;
  readonly #others = new SparseNumbers();

  constructor(first: number, last: number) {
    this.#first = first;
    this.#count = Math.max(0, last - first + 1);
  }

  get size(): number {
    return this.#count + this.#others.size;
  }

  of(id: number): number {
    const number = id - this.#first;
    return number >= 0 && number < this.#count ? number : this.#count + this.#others.of(id);
  }

  ofAll(first: number, distances: Int32Array): Int32Array {
    const least = first - this.#first;
    const most = least + (distances.at(-1) ?? 0);
    if (least < 0 || most >= this.#count) return distances.map((distance) => this.of(first + distance));
    const numbers = new Int32Array(distances.length);
    for (let nth = 0; nth < distances.length; nth++) numbers[nth] = least + (distances[nth] as number);
    return numbers;
  }

  at(number: number): number | undefined {
    return number < this.#count ? this.#first + number : this.#others.at(number - this.#count);
  }
}

/** In the order in which keys come. */
class SparseNumbers implements KeyNumbers {
  readonly #ids: number[] = [];
  readonly #numbers = new Map<number, number>();

  get size(): number {
    return this.#ids.length;
  }

  of(id: number): number {
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    this.#numbers.set(id, this.#ids.length);
    return this.#ids.push(id) - 1;
  }

  ofAll(first: number, distances: Int32Array): Int32Array {
    return distances.map((distance) => this.of(first + distance));
  }

  at(number: number): number | undefined {
    return this.#ids[number];
  }
}

/** What Postgres writes as integers of 2 or 4 bytes, or as floats of 8: the highest byte first. Takes the bytes over. */
function integersOf(bytes: Buffer, width: 2 | 4 | 8): Int32Array | Float64Array {
  const own = bytes.byteOffset % width === 0 ? bytes : Buffer.from(new Uint8Array(bytes).buffer);
  if (endianness() === 'LE') own[`swap${(8 * width) as 16 | 32 | 64}`]();
  const { buffer, byteOffset, length } = own;
  if (width === 2) return new Int32Array(new Int16Array(buffer, byteOffset, length / 2));
  return width === 4
    ? new Int32Array(buffer, byteOffset, length / 4)
    : new Float64Array(buffer, byteOffset, length / 8);
}
