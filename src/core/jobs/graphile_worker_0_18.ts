/**
 * What works around graphile-worker 0.18. Each part can be deleted with the behaviour that it names:
 *
 * - `surviveLostConnections`: when a connection is lost, it ends the process by a rejection that nobody handles, waits for minutes, or never
 *   finishes its shutdown. When the statement that completes jobs loses a deadlock, it shuts its pool down instead of asking again.
 * - `believeMigrationsAlone`: it shuts down when it is notified of a breaking migration, and any session of the database may notify.
 * - `batched_completions`: completed one by one, jobs that are finished when the pool stops can stay locked, and run again four hours later.
 * - `keepReturnable`: it shuts down by force when it stops with jobs waiting in its local queue, because it refuses to return them unless
 *   something else is going on in that queue.
 * - `hearOwnJobs`: each pool looks for jobs whenever there are new ones, of whichever pool. (`core.enqueue` does the work of its `add_jobs`.)
 * - `isPoolSizeWarning`: it warns when the pool has fewer connections than a job each, although jobs are fetched and completed many at a time.
 */
import type { RunnerOptions, WorkerEvents } from 'graphile-worker';
import type pg from 'pg';
import { tries } from '../postgres/database.ts';
import { isRetryable, isUnavailable } from '../postgres/errors.ts';

export interface LostConnections {
  /** Whether the worker restarts or stops anyway: from then on every failure is one of a lost connection. */
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

/** Passes on that graphile-worker was migrated only where it was, since the connection was opened. All other notifications only make it look for jobs. */
export function believeMigrationsAlone(pool: pg.Pool): void {
  pool.on('connect', (client) => {
    const emit = client.emit.bind(client) as (...given: unknown[]) => boolean;
    let is_asking = false;
    const verify = async (given: unknown[]) => {
      is_asking = true;
      const { rows } = await client.query<{ migrated: boolean }>(migrated_since).finally(() => (is_asking = false));
      if (rows[0]?.migrated) emit(...given);
    };
    client.emit = ((...given: unknown[]) => {
      const [name, message] = given as [string, pg.Notification | undefined];
      if (name !== 'notification' || message?.channel !== 'worker:migrate') return emit(...given);
      if (!is_asking) verify(given).catch(() => {});
      return true;
    }) as typeof client.emit;
  });
}

const migrated_since = `
  select exists (
    select from graphile_worker.migrations m
    where m.breaking and m.ts > (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid())
  ) as migrated`;

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

/** Lets a pool hear of new jobs of its own tasks alone, where the notification says whose they are. */
export function hearOwnJobs(events: WorkerEvents, own: Record<string, unknown>): void {
  events.on('pool:listen:success', ({ client }) => {
    const emit = client.emit.bind(client) as (...given: unknown[]) => boolean;
    client.emit = ((...given: unknown[]) => {
      const [name, message] = given as [string, pg.Notification | undefined];
      const isOthers = name === 'notification' && message?.channel === 'jobs:insert' && !concerns(message, own);
      return isOthers || emit(...given);
    }) as typeof client.emit;
  });
}

/** Any session of the database may notify whatever it likes. */
function concerns({ payload = '' }: pg.Notification, own: Record<string, unknown>): boolean {
  try {
    const { tasks } = JSON.parse(payload) as { tasks?: unknown };
    return !Array.isArray(tasks) || tasks.some((name) => Object.hasOwn(own, name));
  } catch {
    return true;
  }
}

export const isPoolSizeWarning = (message: string): boolean => message.includes('maxPoolSize');
