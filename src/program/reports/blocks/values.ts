/** The values of blocks. What was read is kept while there is room, by what is in a block: a block that is packed anew has another hash. */
import { endianness } from 'node:os';
import { LRUCache } from 'lru-cache';
import sql, { join, raw } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import type { Metric } from '../metric.ts';

/** A block as report_block has it, without its values. */
export interface ListedBlock {
  slice_id: number;
  /** Minutes since 1970. */
  starts_in: number;
  currency: string;
  first_key: number;
  last_key: number;
  key_count: number;
  hash: string;
}

/** In the order of keys. Empty: 0 of all. */
export type Values = Int16Array | Int32Array | Float64Array;

interface ReadBlock {
  block: ListedBlock;
  /** What each is more than the first one. */
  keys: Int32Array;
  /** Of each measure that was asked for. */
  values: Values[];
}

/** Keys that are fetched at a time: so many are in memory twice, while Postgres sends the next ones. */
const keys_of_portion = 150_000;
const most_kept_bytes = 64 * 2 ** 20;
/** What keeping a column takes besides its values. */
const bytes_of_column = 300;

type Column = Metric | 'keys';

/** What is kept of a block. */
type Kept = Map<Column, Values>;

const kept = new LRUCache<string, Kept>({
  maxSize: most_kept_bytes,
  sizeCalculation: (columns) => columns.values().reduce((sum, { byteLength }) => sum + byteLength + bytes_of_column, 0),
});

/** A slice is of one organization: nobody finds what another one's block holds. */
const nameOf = ({ slice_id }: ListedBlock, hash: string): string => `${slice_id} ${hash}`;

/** The blocks that are kept, then the others: Postgres sends the next ones while those before are in use. */
export async function* readBlocks<Block extends ListedBlock>(
  tx: Tx,
  listed: Block[],
  names: Metric[],
): AsyncGenerator<ReadBlock & { block: Block }> {
  const columns: Column[] = ['keys', ...names];
  const missing: Block[] = [];
  for (const block of listed) {
    const known = kept.get(nameOf(block, block.hash));
    if (known && columns.every((column) => known.has(column))) yield readOf(block, known, names);
    else missing.push(block);
  }
  for await (const [block, row] of fetchBlocks(tx, missing, columns)) {
    const name = nameOf(block, row.hash);
    const found: Kept = new Map(kept.peek(name));
    for (const column of columns) found.set(column, valuesOf(row[column], column === 'keys' ? 4 : row.width));
    kept.set(name, found);
    yield readOf(block, found, names);
  }
}

const readOf = <Block>(block: Block, columns: Kept, names: Metric[]) => ({
  block,
  keys: columns.get('keys') as Int32Array,
  values: names.map((name) => columns.get(name) as Values),
});

type Fetched = { nth: number; hash: string; width: 2 | 4 | 8 } & Record<Column, Buffer | null>;

async function* fetchBlocks<Block extends ListedBlock>(
  tx: Tx,
  listed: Block[],
  columns: Column[],
): AsyncGenerator<[Block, Fetched]> {
  let next: { portion: Block[]; rows: Promise<Fetched[]> } | undefined;
  for (const portion of [...portionsOf(listed), undefined]) {
    const last = next;
    next = portion && { portion, rows: fetchPortion(tx, portion, columns) };
    // Its failure is thrown where it is awaited.
    next?.rows.catch(() => {});
    for (const row of (await last?.rows) ?? []) yield [last?.portion[row.nth - 1] as Block, row];
  }
}

const fetchPortion = (tx: Tx, portion: ListedBlock[], columns: Column[]): Promise<Fetched[]> =>
  tx.all<Fetched>(sql`
    select s.nth, encode(b.hash, 'hex') as hash, b.width, ${join(columns.map((column) => raw(`b.${column}`)))}
    from unnest(
      ${portion.map(({ slice_id }) => slice_id)}::integer[], ${portion.map(({ starts_in }) => starts_in)}::integer[],
      ${portion.map(({ currency }) => currency)}::text[]
    ) with ordinality as s (slice_id, starts_in, currency, nth)
    join program.report_block b
      on b.organization_id = ${tx.organization_id} and b.slice_id = s.slice_id and b.starts_in = s.starts_in and b.currency = s.currency`);

function portionsOf<Block extends ListedBlock>(listed: Block[]): Block[][] {
  const portions: Block[][] = [];
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

/**
 * What Postgres writes as integers of 2 or 4 bytes, or as floats of 8: the highest byte first. What is kept is in shared memory, which V8 does not
 * count: of so much memory that it counts, it would collect its whole heap every few reports.
 */
function valuesOf(bytes: Buffer | null, width: 2 | 4 | 8): Values {
  const own = new SharedArrayBuffer(bytes?.length ?? 0);
  new Uint8Array(own).set(bytes ?? []);
  if (endianness() === 'LE') Buffer.from(own)[`swap${(8 * width) as 16 | 32 | 64}`]();
  if (width === 2) return new Int16Array(own);
  return width === 4 ? new Int32Array(own) : new Float64Array(own);
}
