/** Divides the connections of a process: each kind of request has its share, and cancels what nobody waits for. */
import type { EventEmitter } from 'node:events';
import type pg from 'pg';
import { cancelling } from './cancel.ts';

/** A request for a connection. */
export interface Asked {
  /** The kind that shares connections: the noun of an operation. Null: a probe, for which some are kept. */
  kind: string | null;
  /** Aborted when nobody waits for the answer any more; its reason is what the work fails with. */
  signal: AbortSignal;
  /** The time limit of each statement, should it not be cancelled. */
  most_ms: number;
}

export interface Lent {
  client: pg.PoolClient;
  /** Gives it back, once nothing on its way can cancel what its next holder runs. @param broken why it is not to be used again */
  giveBack(broken?: Error): Promise<void>;
}

/** Left to those who ask for none of the shares: probes and metrics. */
const keptOf = (most: number): number => (most >= 10 ? 2 : 1);

interface Waiting {
  kind: string;
  admit(): void;
}

/** The shares of one pool. */
class Shares {
  readonly waiting: Waiting[] = [];
  readonly #pool: pg.Pool;
  readonly #held = new Map<string, number>();

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    // It is counted as idle, or gone, once the pool is done with it.
    const later = () => setImmediate(() => this.#admit());
    pool.on('release', later);
    pool.on('remove', later);
  }

  /** Waits until the kind may have another connection. @throws the signal's reason */
  async enter(kind: string, signal: AbortSignal): Promise<void> {
    if (this.#mayHave(kind)) return this.#count(kind, 1);
    const turn = Promise.withResolvers<void>();
    const waiting = { kind, admit: turn.resolve };
    const leave = () => {
      const at = this.waiting.indexOf(waiting);
      if (at === -1) return; // it was admitted just before
      this.waiting.splice(at, 1);
      turn.reject(signal.reason);
    };
    this.waiting.push(waiting);
    signal.addEventListener('abort', leave, { once: true });
    await turn.promise;
    signal.removeEventListener('abort', leave);
  }

  leave(kind: string): void {
    this.#count(kind, -1);
  }

  /** Returns whether a kind may have one more: it has half of the pool at most, and the next one half of the rest. */
  #mayHave(kind: string): boolean {
    const { totalCount, idleCount, waitingCount, options } = this.#pool;
    const free = options.max - (totalCount - idleCount) - waitingCount - keptOf(options.max);
    return (this.#held.get(kind) ?? 0) < free;
  }

  #count(kind: string, change: number): void {
    const held = (this.#held.get(kind) ?? 0) + change;
    if (held === 0) this.#held.delete(kind);
    else this.#held.set(kind, held);
  }

  /** In the order in which they came; who may not have one holds up no other kind. */
  #admit(): void {
    const refused = new Set<string>();
    for (const waiting of [...this.waiting]) {
      const { kind } = waiting;
      if (refused.has(kind)) continue;
      if (!this.#mayHave(kind)) {
        refused.add(kind);
        continue;
      }
      this.waiting.splice(this.waiting.indexOf(waiting), 1);
      this.#count(kind, 1);
      waiting.admit();
      // An admitted caller takes its connection before the next is considered.
      return void setImmediate(() => this.#admit());
    }
  }
}

const shares = new WeakMap<pg.Pool, Shares>();

function sharesOf(pool: pg.Pool): Shares {
  const found = shares.get(pool) ?? new Shares(pool);
  shares.set(pool, found);
  return found;
}

/** Returns the number of callers that wait for a connection of this pool. */
export const waitingFor = (pool: pg.Pool): number => pool.waitingCount + (shares.get(pool)?.waiting.length ?? 0);

/** Emitted by a pool when it has lent a connection, with the milliseconds that the caller waited for it. */
export const lent_event = 'rail:lent';

/** Lends a connection. @param asked left out by tasks, whose number is bounded otherwise */
export async function lend(pool: pg.Pool, asked?: Asked): Promise<Lent> {
  const asked_at = performance.now();
  const lent = await lendTo(pool, asked);
  (pool as EventEmitter).emit(lent_event, performance.now() - asked_at);
  return lent;
}

async function lendTo(pool: pg.Pool, asked?: Asked): Promise<Lent> {
  if (!asked) {
    const client = await pool.connect();
    return { client, giveBack: async (broken) => client.release(broken) };
  }
  const { kind, signal } = asked;
  signal.throwIfAborted();
  if (kind === null) return lentTo(await pool.connect(), signal, () => {});
  const of = sharesOf(pool);
  await of.enter(kind, signal);
  try {
    return lentTo(await pool.connect(), signal, () => of.leave(kind));
  } catch (error) {
    of.leave(kind);
    throw error;
  }
}

function lentTo(client: pg.PoolClient, signal: AbortSignal, leave: () => void): Lent {
  let stop: (() => Promise<boolean>) | undefined;
  const begin = () => {
    stop = cancelling(client);
  };
  if (signal.aborted) begin();
  signal.addEventListener('abort', begin, { once: true });
  return {
    client,
    async giveBack(broken) {
      signal.removeEventListener('abort', begin);
      const is_over = (await stop?.()) ?? true;
      leave();
      client.release(broken ?? (is_over ? undefined : new Error('A request to cancel may still reach it.')));
    },
  };
}

/** Runs one piece of work on a connection that is lent to it. */
export async function withLent<Result>(
  pool: pg.Pool,
  asked: Asked,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const { client, giveBack } = await lend(pool, asked);
  try {
    asked.signal.throwIfAborted();
    return await work(client);
  } catch (error) {
    throw asked.signal.aborted ? asked.signal.reason : error;
  } finally {
    await giveBack();
  }
}
