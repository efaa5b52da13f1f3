/**
 * Works around graphile-worker 0.18. Each part can be deleted with the behaviour that it names:
 *
 * - `surviveLostConnections`: when a connection is lost, it ends the process by a rejection that nobody handles, waits for minutes, or never
 *   finishes its shutdown. When the statement that completes jobs loses a deadlock, it shuts its pool down instead of asking again.
 * - `listenElsewhere`: each pool listens with a session of its own, which every notification of the database wakes, and looks for jobs whenever
 *   there are new ones, of whichever pool. The session that proves the worker alive listens for all pools instead.
 * - `wasMigrated`: it shuts down when it is notified of a breaking migration, and any session of the database may notify.
 * - `batched_completions`: completed one by one, jobs that are finished when the pool stops can stay locked, and run again four hours later.
 * - `keepReturnable`: it shuts down by force when it stops with jobs waiting in its local queue, because it refuses to return them unless
 *   something else is going on in that queue.
 * - `isPoolSizeWarning`: it warns when the pool has fewer connections than a job each, although jobs are fetched and completed many at a time.
 * - `core.enqueue`, in SQL: its `add_jobs` looks five times for what it inserts once.
 */
import type { RunnerOptions, WorkerEvents } from 'graphile-worker';
import type pg from 'pg';
import sql from 'sql-template-tag';
import { type Database, run, tries } from '../postgres/database.ts';
import { isRetryable, isUnavailable } from '../postgres/errors.ts';

export interface LostConnections {
  /** Returns whether the worker restarts or stops anyway: from then on every failure is one of a lost connection. */
  isOver(): boolean;
  /** Hears of the first connection that is lost. */
  onLost(error: Error): void;
}

/**
 * Once a connection of the pool is lost, leaves unanswered what graphile-worker asks, and says so to `onLost`, which has the worker
 * restarted. Statements that lost a deadlock are run again.
 */
export function surviveLostConnections(pool: pg.Pool, lost: LostConnections): void {
  const connect = pool.connect.bind(pool);
  pool.connect = ((callback?: Parameters<typeof connect>[0]) => {
    if (!callback) return orSilence(connect(), lost);
    connect((error, client, release) => {
      if (!error || !isLost(error, lost)) callback(error, client, release);
    });
  }) as typeof pool.connect;
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    const ask = (given: unknown[], attempt: number): unknown => {
      const answer = query(...given);
      if (!(answer instanceof Promise)) return answer;
      const lostDeadlock = (error: unknown) => isRetryable(error) && attempt < tries;
      const again = (error: unknown) => (lostDeadlock(error) ? ask(given, attempt + 1) : Promise.reject(error));
      return orSilence(answer.catch(again), lost);
    };
    client.query = ((...given: unknown[]) => ask(given, 1)) as typeof client.query;
    client.on('error', () => {});
  });
}

const orSilence = <T>(answer: Promise<T>, lost: LostConnections): Promise<T> =>
  answer.catch((error) => (isLost(error, lost) ? new Promise<never>(() => {}) : Promise.reject(error)));

function isLost(error: Error, { isOver, onLost }: LostConnections): boolean {
  if (isOver()) return true;
  if (!isUnavailable(error) && !isRetryable(error)) return false;
  onLost(error);
  return true;
}

/** The channels that it notifies on: new jobs, with their tasks where `core.enqueue` names them, and migrations of its tables. */
export const channels = { jobs: 'jobs:insert', migrations: 'worker:migrate' };

/** Leaves what pools ask to listen to unasked. */
export function listenElsewhere(pool: pg.Pool): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    client.query = ((...given: unknown[]) => {
      const [text] = given;
      return typeof text === 'string' && text.startsWith('LISTEN ') ? Promise.resolve() : query(...given);
    }) as typeof client.query;
  });
}

/** Returns whether new jobs in a notification may be the pool's own. Any session of the database may notify whatever it likes. */
export function concerns(payload: string, own: Record<string, unknown>): boolean {
  try {
    const { tasks } = JSON.parse(payload) as { tasks?: unknown };
    return !Array.isArray(tasks) || tasks.some((name) => Object.hasOwn(own, name));
  } catch {
    return true;
  }
}

/** Returns whether its tables were migrated since a worker started, which must stop then. */
export async function wasMigrated(database: Database, worker_id: string): Promise<boolean> {
  const migrated = await run(
    database,
    sql`select from graphile_worker.migrations m
      where m.breaking and m.ts > (select w.started_at from core.worker w where w.id = ${worker_id})`,
  );
  return migrated.length > 0;
}

export const batched_completions = { completeJobBatchDelay: 0, failJobBatchDelay: 0 } satisfies NonNullable<
  RunnerOptions['preset']
>['worker'];

export function keepReturnable(events: WorkerEvents): void {
  events.on('localQueue:init', ({ localQueue }) => {
    const busy = Promise.withResolvers<void>();
    (localQueue as unknown as { background(work: Promise<void>): void }).background(busy.promise);
    events.on('localQueue:setMode', ({ newMode }) => {
      if (newMode === 'RELEASED') setImmediate(busy.resolve);
    });
  });
}

export const isPoolSizeWarning = (message: string): boolean => message.includes('maxPoolSize');
