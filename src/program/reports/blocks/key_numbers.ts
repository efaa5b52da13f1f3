/** Numbers of keys, from 0, under which they are added up. */
import type { ListedBlock } from './values.ts';

export interface KeyNumbers {
  /** One more than the highest. */
  readonly size: number;
  of(id: number): number;
  /** The numbers of keys that are given by what they are more than the first. */
  ofAll(first: number, distances: Int32Array): Numbers;
  /** The key with a number, if one has it. */
  at(number: number): number | undefined;
}

/** Each is the first one and its distance. */
export interface Numbers {
  first: number;
  distances: Int32Array;
  /** How many of them may be the same. */
  most_same: number;
}

/** So many sums of a window and a currency take 8 MiB. */
const most_dense = 1 << 20;

/** @param measures how many there are */
export function numbersFor(blocks: ListedBlock[], measures: number): KeyNumbers {
  const first = blocks.reduce((least, { first_key }) => Math.min(least, first_key), Number.POSITIVE_INFINITY);
  const last = blocks.reduce((most, { last_key }) => Math.max(most, last_key), 0);
  return (last - first) * measures < most_dense ? new DenseNumbers(first, last) : new SparseNumbers();
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

  ofAll(first: number, distances: Int32Array): Numbers {
    const least = first - this.#first;
    const most = least + (distances.at(-1) ?? 0);
    if (least >= 0 && most < this.#count) return { first: least, distances, most_same: 1 };
    return { first: 0, distances: distances.map((distance) => this.of(first + distance)), most_same: 1 };
  }

  at(number: number): number | undefined {
    return number < this.#count ? this.#first + number : this.#others.at(number - this.#count);
  }
}

/** In the order in which keys come. */
export class SparseNumbers implements KeyNumbers {
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

  ofAll(first: number, distances: Int32Array): Numbers {
    return { first: 0, distances: distances.map((distance) => this.of(first + distance)), most_same: 1 };
  }

  at(number: number): number | undefined {
    return this.#ids[number];
  }
}

/** All keys of a member have its number. */
export class MemberNumbers implements KeyNumbers {
  readonly size: number;
  readonly #find: (id: number) => number | undefined;

  constructor(members: { ids: number[] }[]) {
    this.size = members.length;
    const pairs = members.flatMap(({ ids }, number) => ids.map((id) => [id, number] as const));
    const first = pairs.reduce((least, [id]) => Math.min(least, id), Number.POSITIVE_INFINITY);
    const last = pairs.reduce((most, [id]) => Math.max(most, id), 0);
    if (last - first < most_dense) {
      const numbers: (number | undefined)[] = new Array(Math.max(0, last - first + 1)).fill(undefined);
      for (const [id, number] of pairs) numbers[id - first] = number;
      this.#find = (id) => numbers[id - first];
    } else {
      const numbers = new Map(pairs);
      this.#find = (id) => numbers.get(id);
    }
  }

  /** @throws Error where it is of no member */
  of(id: number): number {
    const number = this.#find(id);
    if (number === undefined) throw new Error(`The key ${id} is not known.`);
    return number;
  }

  ofAll(first: number, distances: Int32Array): Numbers {
    const numbers = distances.map((distance) => this.of(first + distance));
    return { first: 0, distances: numbers, most_same: numbers.length };
  }

  at(): undefined {
    return undefined;
  }
}
