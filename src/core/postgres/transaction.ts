import type { EventEmitter } from 'node:events';
import pg from 'pg';
import sql, { type Sql } from 'sql-template-tag';
import { type Asked, lend } from '../pool/lending.ts';
import { databaseTime } from '../values/clock.ts';
import { traceparent } from '../values/trace.ts';
import { batchesOf } from './cursor.ts';
import { type Database, run, send, tries } from './database.ts';
import { hasLostRace, isRetryable, translateError } from './errors.ts';

/** An event as a handler emits it; the product's event log gives it its id, envelope and position. */
export interface EventDraft {
  /** The product that emits it. */
  product: string;
  type: string;
  /** The object that it is about, and that endpoints listen to. */
  subject_id: string;
  /** The owner whose postbacks receive it too, and theirs alone. */
  owner_id: string | null;
  data: object;
  /** False for the event of a test, which test endpoints alone receive. */
  livemode?: boolean;
  /** Its cause, where that is one of several requests that share the transaction. */
  request_id?: string | null;
}

/** An event as it is emitted, before the product's envelope. */
export interface EmittedEvent {
  id: string;
  type: string;
  created_at: string;
  data: object;
  /** The cause: `req_…`, `run_…`, null; undefined for a test event. */
  request_id: string | null | undefined;
  livemode: boolean;
}

/** Writes drafts, in their order. It comes from outside, because core knows no product. */
export type WriteEvents = (
  drafts: EventDraft[],
  of: { organization_id: string; request_id: string | null; now: string },
) => Sql[];

/** The channel on which those who deliver events hear that some were committed. */
export const events_channel = 'rail:events';

export interface Job {
  identifier: string;
  payload: object;
  job_key?: string;
  run_at?: string;
  max_attempts?: number;
  /** The time for which a waiting job of the key may still wait. Left out: it is due when this one is. */
  patience_ms?: number;
}

export interface TransactionOptions {
  /** The tenant: the transaction sees its rows alone, as the API's role. Null: the whole service's own work, in tasks only. */
  organization_id: string | null;
  /** A partner, whose rows alone the transaction sees, as the portal's role. */
  partner_id?: string | undefined;
  /** The cause that the events carry: `req_…`, `run_…`, a uuid, or null. */
  request_id: string | null;
  /** The time that holds in it; the database's clock when left out. */
  now?: string | undefined;
  /** Takes this idempotency key's lock and reads what is stored under it: see `tx.stored`. */
  idempotency_key?: string | undefined;
  /** The request that the transaction answers: nothing of it is done once nobody waits for it. */
  asked?: Asked | undefined;
  /** Reads the facts that the work is checked against: it goes out with the begin, before `now` is known. The work awaits it as `tx.ahead`. */
  ahead?: ((tx: Tx) => Promise<unknown>) | undefined;
  /** All statements see one state of the database. Else each sees what was committed when it began. */
  one_state?: boolean | undefined;
  /** It writes nothing: its first statement goes out with its begin, and nobody waits for its end. Its `now` is the time as this process knows it. */
  only_reads?: boolean | undefined;
}

/** @internal */
export interface Opened {
  now: string;
  in_flight: boolean;
  fingerprint: Buffer | null;
  status: number | null;
  reply: Buffer | null;
}

/**
 * A transaction in the hands of a handler or a task: rows, events, jobs, and nothing else. Events and jobs are written when the
 * handler is done, after every row lock, with the commit in the same round trip.
 */
export class Tx {
  readonly organization_id: string;
  readonly request_id: string | null;
  /** The facts that were read ahead; undefined where nothing was. */
  readonly ahead: Promise<unknown> | undefined;
  #opened: Opened | undefined;
  readonly #client: pg.PoolClient;
  readonly #signal: AbortSignal | undefined;
  readonly #drafts: EventDraft[] = [];
  readonly #jobs: Job[] = [];
  readonly #last: Sql[] = [];
  readonly #sent: Promise<object[]>[] = [];
  readonly #writeEvents: WriteEvents | undefined;
  readonly #rendered: Sql[] = [];
  #has_events = false;
  #cursors = 0;

  /** @param writeEvents left out where nothing is written */
  constructor(client: pg.PoolClient, options: TransactionOptions, writeEvents?: WriteEvents) {
    this.#client = client;
    this.#signal = options.asked?.signal;
    this.#writeEvents = writeEvents;
    this.organization_id = options.organization_id ?? '';
    this.request_id = options.request_id;
    this.ahead = options.ahead?.(this);
    // The caller that awaits it gets its failure; nobody else needs it.
    this.ahead?.catch(() => {});
  }

  /** ISO 8601, UTC, milliseconds: the one "now" of everything that this transaction writes. */
  get now(): string {
    return this.#open().now;
  }

  /** The reply that is stored under the idempotency key, and whether its first request is still running. */
  get stored(): Omit<Opened, 'now'> {
    return this.#open();
  }

  #open(): Opened {
    if (!this.#opened) throw new Error('What is read ahead of a transaction does not know its time.');
    return this.#opened;
  }

  /** @internal It is open: what Postgres says of it. */
  opened(by: Opened): void {
    this.#opened = by;
  }

  all<Row extends object>(statement: Sql): Promise<Row[]> {
    if (this.#signal?.aborted) return Promise.reject(this.#signal.reason);
    return run<Row>(this.#client, statement);
  }

  /** The one row, or undefined where there is none. */
  async maybe<Row extends object>(statement: Sql): Promise<Row | undefined> {
    return (await this.all<Row>(statement))[0];
  }

  /** The one row that must be there. */
  async one<Row extends object>(statement: Sql): Promise<Row> {
    const row = await this.maybe<Row>(statement);
    if (!row) throw new Error('A statement that always gives a row gave none.');
    return row;
  }

  /** All rows of a statement, some at a time, for as long as somebody takes them: in what `reading` opens alone. */
  batches<Row extends object>(statement: Sql): AsyncGenerator<Row[]> {
    this.#cursors++;
    return batchesOf<Row>(this.#client, statement, `rows_${this.#cursors}`);
  }

  /** Emits an event. It is written with the commit, in the order of the calls. */
  emit(draft: EventDraft): void {
    this.#drafts.push(draft);
  }

  /**
   * Writes what was emitted so far, where it is too much to be kept until the commit. The organization's events of other transactions are
   * delivered after this one has ended: call it at the end, when all rows are locked.
   */
  async writeEmitted(): Promise<void> {
    this.renderEmitted();
    await together(this.#rendered.splice(0).map((statement) => this.all(statement)));
  }

  /** Makes the statements that write what was emitted so far: of many events it takes its time, which may be that of another statement. */
  renderEmitted(): void {
    if (this.#drafts.length === 0) return;
    if (this.organization_id === '') throw new Error('Events belong to an organization: open the transaction for one.');
    if (!this.#writeEvents) throw new Error('A transaction that only reads emits no events.');
    this.#rendered.push(...this.#writeEvents(this.#drafts.splice(0), this));
    this.#has_events = true;
  }

  /**
   * Enqueues a job that runs once this transaction has committed; one with a key takes the place of an earlier one. `identifier` is the task's path
   * under tasks/.
   */
  enqueue<Name extends string>(
    identifier: Name,
    payload: object,
    options: Omit<Job, 'identifier' | 'payload'> = {},
  ): void {
    this.#jobs.push({ identifier, payload, ...options });
  }

  /** Sends a statement whose rows nobody reads: Postgres works on it meanwhile, and the commit waits for it. */
  send(statement: Sql): void {
    const sent = this.all(statement);
    // Its failure is thrown with the commit, or in place of what failed because of it.
    sent.catch(() => {});
    this.#sent.push(sent);
  }

  /** Runs work that may fail by itself: what it wrote, emitted and enqueued is undone then, and what it locked stays locked. */
  async part<T>(work: () => Promise<T>): Promise<T> {
    const kept = [this.#drafts, this.#jobs, this.#last, this.#sent].map((list) => [list, list.length] as const);
    await this.all(sql`savepoint part`);
    try {
      const result = await work();
      await together(this.#sent);
      return result;
    } catch (error) {
      await Promise.allSettled(this.#sent);
      for (const [list, length] of kept) list.length = length;
      await this.all(sql`rollback to savepoint part`);
      throw error;
    } finally {
      this.send(sql`release savepoint part`);
    }
  }

  /** A statement to be run last, with the commit. */
  atCommit(statement: Sql): void {
    this.#last.push(statement);
  }

  /** @internal What goes out together with the commit: one event statement, one call for all jobs. */
  closing(): Sql[] {
    this.renderEmitted();
    // Postgres refuses two with one key.
    const distinct = [...new Map(this.#jobs.map((job, nth) => [job.job_key ?? nth, job])).values()];
    const traced = traceparent();
    const jobs = traced
      ? distinct.map((job) => ({ ...job, payload: { ...job.payload, traceparent: traced } }))
      : distinct;
    const enqueuing = jobs.length > 0 ? [sql`select core.enqueue(${JSON.stringify(jobs)}::json, false)`] : [];
    return [...this.#rendered, ...enqueuing, ...this.#last];
  }

  /** @internal Whether it writes events: to be asked after `closing`. */
  get has_events(): boolean {
    return this.#has_events;
  }

  /** @internal The tasks of its jobs that are to run at once. */
  get tasks(): string[] {
    return this.#jobs.filter(({ run_at }) => run_at === undefined).map(({ identifier }) => identifier);
  }

  /** @internal What was sent, settled. @throws the first failure among it */
  async settle(): Promise<void> {
    await together(this.#sent);
  }
}

const nothing_stored = { in_flight: false, fingerprint: null, status: null, reply: null };

/** @internal */
export const one_state = 'isolation level repeatable read';

/** The code of a statement in a transaction that has failed before. */
const aborted = '25P02';

/** Opens transactions: the pool, and how products write their events. */
export interface Store {
  database: Database;
  /** The replica for reads that may lag, if there is one. */
  replica?: Database | undefined;
  writeEvents: WriteEvents;
  /** Set in a process that delivers events: hears that some were committed here. Elsewhere those processes are notified. */
  hearEvents?: (() => void) | undefined;
}

/** Emitted by the pool of a store when a transaction is run again. */
export const retried_event = 'rail:retried';

/** The same store, for transactions that write nothing and may see a state of some seconds ago. */
export const lagging = (store: Store): Store => ({ ...store, database: store.replica ?? store.database });

/**
 * Runs `work` in a transaction and commits it. All or nothing: a throw rolls everything back. A deadlock runs it again, and so does what
 * another transaction took or deleted meanwhile, so `work` must touch nothing but its `tx`.
 * @throws Problem of a value that cannot be stored; an error of Postgres where it is away; whatever `work` throws
 */
export async function transaction<T>(
  store: Store,
  options: TransactionOptions,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(store, options, work);
    } catch (error) {
      if (options.asked?.signal.aborted) throw options.asked.signal.reason;
      if (attempt >= triesAfter(error)) throw translateError(error);
      (store.database as EventEmitter).emit(retried_event);
    }
  }
}

function triesAfter(error: unknown): number {
  if (hasLostRace(error)) return 2;
  return isRetryable(error) ? tries : 1;
}

async function runOnce<T>(store: Store, options: TransactionOptions, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (options.only_reads) return readOnce(store, options, work);
  const { client, giveBack } = await lend(store.database, options.asked);
  let broken: Error | undefined;
  try {
    options.asked?.signal.throwIfAborted();
    const begun = together([
      send(client, { text: options.one_state ? `begin ${one_state}` : 'begin' }),
      run<Opened>(client, opening(options)),
    ]);
    const tx = new Tx(client, options, store.writeEvents);
    const [, [opened]] = await begun;
    tx.opened({ ...(opened as Opened), ...(options.now ? { now: options.now } : {}) });
    const result = await within(tx, work);
    // From here on it is sent as a whole, and may commit although it is cancelled.
    options.asked?.signal.throwIfAborted();
    const closing = tx.closing().map((statement) => run(client, statement));
    const committed = commit(client, notificationsOf(tx, store));
    await together([tx.settle(), ...closing, committed]);
    if (tx.has_events) store.hearEvents?.();
    return result;
  } catch (error) {
    await send(client, { text: 'rollback' }).catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    await giveBack(broken);
  }
}

/** Returns the notifications for workers after the commit. */
function notificationsOf({ has_events, tasks }: Tx, { hearEvents }: Store): string[] {
  const jobs = JSON.stringify({ count: tasks.length, tasks: [...new Set(tasks)] });
  return [
    ...(has_events && !hearEvents ? [`notify "${events_channel}"`] : []),
    ...(tasks.length > 0 ? [`notify "jobs:insert", ${pg.escapeLiteral(jobs)}`] : []),
  ];
}

/**
 * Commits, and then notifies in the same round trip. Inside the transaction a notification would have each commit wait for the disk by itself, one
 * after another. What is lost with this process is found all the same: the sweep finds events, and workers look for jobs every second.
 */
async function commit(client: pg.PoolClient, notifications: string[]): Promise<void> {
  const answer: pg.QueryResult | pg.QueryResult[] = await send(client, {
    text: ['commit', ...notifications].join('; '),
  });
  const [committed] = [answer].flat();
  if (committed?.command !== 'COMMIT') throw new Error('The transaction did not commit.');
}

async function readOnce<T>({ database }: Store, options: TransactionOptions, work: (tx: Tx) => Promise<T>): Promise<T> {
  const { client, giveBack } = await lend(database, options.asked);
  const begin = options.one_state ? `begin ${one_state}, read only` : 'begin read only';
  const opened = together([send(client, { text: begin }), run(client, opening(options))]);
  // Its failure is thrown in place of what failed because of it.
  opened.catch(() => {});
  const tx = new Tx(client, options);
  tx.opened({ now: new Date(databaseTime()).toISOString(), ...nothing_stored });
  try {
    options.asked?.signal.throwIfAborted();
    const result = await work(tx);
    if (tx.closing().length > 0) throw new Error('A transaction that only reads writes nothing at its end.');
    return result;
  } catch (error) {
    await opened;
    throw error;
  } finally {
    const ended = send(client, { text: 'commit' });
    void ended
      .then(
        () => undefined,
        (failure: Error) => failure,
      )
      .then(giveBack);
  }
}

/** A statement fails with `aborted` after one that was sent and not waited for: that one is the cause. */
async function within<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await work(tx);
  } catch (error) {
    if ((error as { code?: string }).code === aborted) await tx.settle();
    throw error;
  }
}

/** @internal The statement that makes a transaction the tenant's. */
export const opening = ({ organization_id, partner_id, idempotency_key, asked }: TransactionOptions): Sql => {
  if (organization_id === null)
    return sql`select date_trunc('milliseconds', clock_timestamp()) as now, false as in_flight`;
  if (partner_id !== undefined)
    return sql`select now, in_flight, fingerprint, status, reply from core.open_partner_request(${organization_id}, ${partner_id}, ${asked?.most_ms ?? null}, ${idempotency_key ?? null})`;
  return sql`select now, in_flight, fingerprint, status, reply from core.open_request(${organization_id}, ${idempotency_key ?? null}, ${asked?.most_ms ?? null})`;
};

/** @internal Awaits statements that went out together; the first failure in their order is the cause of the others. */
export async function together<const T extends readonly unknown[]>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const results = await Promise.allSettled(statements);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [K in keyof T]: Awaited<T[K]>;
  };
}
