/** Adds up sums by window, key and currency. */

import type { Metric } from '../metric.ts';
import { FoundKeys } from './found_keys.ts';
import type { KeyNumbers, Numbers } from './key_numbers.ts';
import type { ListedBlock, Values } from './values.ts';

/** A row of report_total, or of what is in no sum yet. */
export type Row = { w: number; id: number; currency: string } & Record<string, unknown>;

/** Of a window and a currency: for each measure the sums, in the order of the keys' numbers. */
interface Cell {
  w: number;
  currency: string;
  columns: Float64Array[];
}

/** A look at each sum takes as long as to add it up. */
const most_unseen = 2 ** 52;

/** The most that an integer of a block may be; others are looked at. */
const mostOf = (values: Values): number =>
  values instanceof Float64Array ? 0 : 2 ** (8 * values.BYTES_PER_ELEMENT - 1);

/**
 * Columns of sums that nobody uses any more. Those of one report are as long as those of the next, and of so much new memory V8 collects its whole
 * heap every few reports.
 */
const spare: Float64Array[] = [];
const most_spare = 4;
/** Shorter ones cost nothing. */
const least_spare = 1 << 11;

function borrow(length: number): Float64Array {
  const place = spare.findIndex((one) => one.length >= length && one.length <= 2 * length);
  return (spare.splice(place, place < 0 ? 0 : 1)[0] ?? new Float64Array(length)).fill(0);
}

const itself = Int32Array.of(0);

/** Sums by window, key and currency. When it is disposed of, another one takes the columns over. */
export class KeySums implements Disposable {
  readonly keys: KeyNumbers;
  readonly cells: Cell[] = [];
  /** Keys that have anything, whether it is added up or not. */
  readonly found = new FoundKeys();
  readonly #names: Metric[];
  /** The most that was added to any sum without a look at it. */
  #unseen = 0;
  #is_beyond = false;

  constructor(names: Metric[], keys: KeyNumbers) {
    this.#names = names;
    this.keys = keys;
  }

  /**
   * @param keys what each is more than the first one
   * @param values of each measure, in the order of keys
   */
  addBlock(w: number, { currency, first_key }: ListedBlock, keys: Int32Array, values: Values[]): void {
    const numbers = this.keys.ofAll(first_key, keys);
    const { columns } = this.#cell(w, currency);
    for (const [nth, of_keys] of values.entries()) this.#addAll(columns[nth] as Float64Array, numbers, of_keys);
    this.#unseen += numbers.most_same * values.reduce((most, of_keys) => Math.max(most, mostOf(of_keys)), 0);
  }

  /** Says of the keys of a block that there are some, and adds nothing up. */
  findBlock(w: number, { first_key }: ListedBlock, keys: Int32Array): void {
    const numbers = this.keys.ofAll(first_key, keys);
    this.found.add(w, numbers, this.keys.size);
  }

  /** Adds what a block has of one of its keys, in its place there. */
  addOne({ w, id, block }: { w: number; id: number; block: ListedBlock }, values: Values[], place: number): void {
    const number = this.keys.of(id);
    const { columns } = this.#cell(w, block.currency);
    for (let nth = 0; nth < values.length; nth++) {
      const value = (values[nth] as Values)[place];
      if (value) this.#addLarge(columns[nth] as Float64Array, number, value);
    }
  }

  add(row: Row): void {
    const number = this.keys.of(row.id);
    const { columns } = this.#cell(row.w, row.currency);
    for (const [nth, name] of this.#names.entries())
      this.#addLarge(columns[nth] as Float64Array, number, (row[name] as number | null) ?? 0);
    this.found.add(row.w, { first: number, distances: itself, most_same: 1 }, this.keys.size);
  }

  [Symbol.dispose](): void {
    const columns = this.cells.splice(0).flatMap((cell) => cell.columns);
    spare.unshift(...columns.filter(({ length }) => length >= least_spare));
    spare.splice(most_spare);
  }

  /** False where a sum may be beyond the integers that a number holds. */
  get is_exact(): boolean {
    return !this.#is_beyond && this.#unseen <= most_unseen;
  }

  /** The sums of a measure in a window: of one currency, or of all. Until it is disposed of. */
  column(w: number, name: Metric, currency?: string): Float64Array {
    const nth = this.#names.indexOf(name);
    const of_window = this.cells.filter((cell) => cell.w === w && (currency ?? cell.currency) === cell.currency);
    const columns = of_window.map((cell) => cell.columns[nth] as Float64Array);
    const { size } = this.keys;
    const [only] = columns;
    if (only && columns.length === 1 && only.length >= size) return only.subarray(0, size);
    const found = new Float64Array(size);
    for (const column of columns)
      for (let number = 0; number < Math.min(column.length, size); number++)
        found[number] = (found[number] as number) + (column[number] as number);
    return found;
  }

  #addAll(sums: Float64Array, { first, distances }: Numbers, values: Values): void {
    if (values instanceof Float64Array) {
      for (const [nth, value] of values.entries()) this.#addLarge(sums, first + (distances[nth] as number), value);
      return;
    }
    for (let nth = 0; nth < values.length; nth++) {
      const number = first + (distances[nth] as number);
      sums[number] = (sums[number] as number) + (values[nth] as number);
    }
  }

  #addLarge(sums: Float64Array, number: number, value: number): void {
    const sum = (sums[number] as number) + value;
    if (Math.abs(sum) > Number.MAX_SAFE_INTEGER - most_unseen) this.#is_beyond = true;
    sums[number] = sum;
  }

  /** With room for all keys that there are. */
  #cell(w: number, currency: string): Cell {
    let cell = this.cells.find((one) => one.w === w && one.currency === currency);
    if (!cell) {
      cell = { w, currency, columns: this.#names.map(() => new Float64Array(0)) };
      this.cells.push(cell);
    }
    if ((cell.columns[0] as Float64Array).length < this.keys.size) {
      const room = Math.ceil(1.25 * this.keys.size) + 1_000;
      cell.columns = cell.columns.map((column) => {
        const grown = borrow(room);
        grown.set(column);
        return grown;
      });
    }
    return cell;
  }
}
