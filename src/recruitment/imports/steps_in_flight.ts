/**
 * Steps of an import, two at a time: while the events of one are emitted and committed, Postgres inserts those of the next one. Steps commit in the
 * order of the file, and those that have a prospect in common run one after the other, so that what comes of each row is as if all did.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { PreparedRow } from './row.ts';
import { isGood, keyOf } from './step.ts';

/** The place of a step in the file, and the row that it waits for. */
export interface Place {
  import_id: string;
  /** The number of rows before those of the step. */
  first: number;
  /** The same of the step before, where that one may still run. */
  first_before: number | undefined;
}

/** The step before failed, or is run again: the rows of this one are rolled back. */
export class OutOfTurn extends Error {}

/** Runs a step. `onBegun` is called when it holds its place, once each time that it runs. @returns false where the import goes no further */
type RunStep = (rows: PreparedRow[], place: Place, onBegun: () => void) => Promise<boolean>;

interface Flight {
  first: number;
  keys: Set<string>;
  begun: Promise<void>;
  done: Promise<boolean>;
}

export class StepsInFlight {
  readonly #import_id: string;
  readonly #run: RunStep;
  #last: Flight | undefined;
  /** After a deadlock with somebody who adds the same prospects, in another order. */
  #is_alone = false;

  /** @param is_alone whether each step needs what those before it did */
  constructor(import_id: string, is_alone: boolean, run: RunStep) {
    this.#import_id = import_id;
    this.#is_alone = is_alone;
    this.#run = run;
  }

  /** Begins a step, and waits until the one before it is done. @returns false where the import goes no further */
  async begin(first: number, rows: PreparedRow[]): Promise<boolean> {
    const keys = new Set(rows.filter(isGood).map(keyOf));
    const before = this.#last;
    if (before && (this.#is_alone || !before.keys.isDisjointFrom(keys)) && !(await before.done)) return false;
    await before?.begun;
    this.#last = { first, keys, ...this.#start(first, rows, before) };
    if (before && !(await before.done)) return false;
    return !this.#is_alone || this.#last.done;
  }

  /** Waits until every step is done. @returns false where the import goes no further */
  async end(): Promise<boolean> {
    return (await this.#last?.done) ?? true;
  }

  /** Waits until nothing runs, whatever came of it. */
  async settle(): Promise<void> {
    await Promise.allSettled([this.#last?.done]);
  }

  #start(first: number, rows: PreparedRow[], before: Flight | undefined): Pick<Flight, 'begun' | 'done'> {
    const begun = Promise.withResolvers<void>();
    let has_begun = false;
    const onBegun = () => {
      this.#is_alone ||= has_begun;
      has_begun = true;
      begun.resolve();
    };
    const done = this.#inTurn(first, rows, before, onBegun).finally(begun.resolve);
    // Its failure is thrown where the next step begins, or at the end.
    done.catch(() => {});
    return { begun: begun.promise, done };
  }

  async #inTurn(first: number, rows: PreparedRow[], before: Flight | undefined, onBegun: () => void): Promise<boolean> {
    const place = { import_id: this.#import_id, first, first_before: before?.first };
    const done = await this.#attempt(rows, place, onBegun);
    if (done !== undefined) return done;
    this.#is_alone = true;
    if (!(await before?.done)) return false;
    return (await this.#attempt(rows, { ...place, first_before: undefined }, onBegun)) ?? false;
  }

  /** @returns undefined where it was out of turn */
  #attempt(rows: PreparedRow[], place: Place, onBegun: () => void): Promise<boolean | undefined> {
    return this.#run(rows, place, onBegun).catch((error) => {
      if (error instanceof OutOfTurn) return undefined;
      throw error;
    });
  }
}

const lockOf = (tx: Tx, import_id: string, first: number): Promise<object[]> =>
  tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`import ${import_id} ${first}`}, 0))`);

/** Until its transaction ends, a step holds its place: what comes next waits for it in Postgres, which sees who waits for whom. */
export const holdPlace = (tx: Tx, { import_id, first }: Place): Promise<object[]> => lockOf(tx, import_id, first);

/** Waits until the transaction of the step before has ended. */
export async function awaitBefore(tx: Tx, { import_id, first_before }: Place): Promise<void> {
  if (first_before !== undefined) await lockOf(tx, import_id, first_before);
}
