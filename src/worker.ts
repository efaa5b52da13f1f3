import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Task as Job,
  type Runner,
  type RunnerOptions,
  run as runJobs,
  type WorkerEvents,
  Logger as WorkerLogger,
} from 'graphile-worker';
import pg from 'pg';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { run } from './core/database.ts';
import { type Liveness, proveLife } from './core/liveness.ts';
import type { Services } from './core/operation.ts';
import { startSchedule } from './core/schedule.ts';
import { loadTasks, type Task, type TaskContext } from './core/task.ts';
import type { Store } from './core/transaction.ts';
import { schedules } from './schedule.ts';
import { createPinnedAgent } from './webhooks/agent.ts';
import { fanOut } from './webhooks/fan_out.ts';

export interface WorkerOptions {
  url: string;
  store: Store;
  services: Services;
  /** Jobs that run at a time, besides deliveries; twice as many endpoints are delivered to at a time. */
  concurrency: number;
  log: Logger;
}

/** How long running jobs may take to finish once the worker stops; then foreign calls are cut off. */
const grace_ms = 6_000;
const sweep_ms = 1_000;
const janitor_ms = 5_000;

/** Runs jobs until it is stopped. What ends early (Postgres went away, a pool broke) is begun again. */
export function startWorker(options: WorkerOptions): { stop(): Promise<void>; ready: Promise<void> } {
  const stopping = new AbortController();
  const cut_off = new AbortController();
  const ready = Promise.withResolvers<void>();
  const finished = supervise(options, stopping.signal, cut_off.signal, ready.resolve);
  return {
    ready: ready.promise,
    async stop() {
      stopping.abort();
      const timer = setTimeout(() => cut_off.abort(), grace_ms);
      await finished;
      clearTimeout(timer);
    },
  };
}

async function supervise(
  options: WorkerOptions,
  stopping: AbortSignal,
  cut_off: AbortSignal,
  ready: () => void,
): Promise<void> {
  while (!stopping.aborted) {
    try {
      await live(options, stopping, cut_off, ready);
    } catch (error) {
      if (stopping.aborted) return;
      options.log.warn({ err: error }, 'the worker lost its footing and begins again');
    }
    await sleep(500, undefined, { signal: stopping }).catch(() => {});
  }
}

/** One life: from proving that it lives until it is stopped, or nobody would believe it any more. */
async function live(
  options: WorkerOptions,
  stopping: AbortSignal,
  cut_off: AbortSignal,
  ready: () => void,
): Promise<void> {
  const { url, store, services, log } = options;
  const alive = await proveLife(url);
  const agent = createPinnedAgent({ allowPrivate: services.allow_private_addresses, ownHosts: services.own_hosts });
  const context: TaskContext = { store, services, agent, log, worker_id: alive.worker_id, stopping, cut_off };
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    application_name: 'rail jobs',
    connectionTimeoutMillis: 5_000,
  });
  const broke = (error: Error) => log.warn({ err: error }, 'a connection of the job queue broke');
  pool.on('error', broke).on('connect', (client) => client.on('error', broke));
  const runners: Runner[] = [];
  const stops: (() => unknown)[] = [];
  try {
    for (const start of pools(await loadTasks(), options, context))
      runners.push(await startPool(start, pool, alive, log));
    const schedule = await startSchedule(store, schedules, log);
    stops.push(
      () => schedule.stop(),
      every(sweep_ms, () => sweep(context), log),
      every(janitor_ms, () => bury(context), log),
    );
    ready();
    log.info({ worker_id: alive.worker_id }, 'worker ready');
    await Promise.race([alive.lost, aborted(stopping), ...runners.map((runner) => runner.promise)]);
  } finally {
    await Promise.allSettled(stops.map((stop) => stop()));
    await Promise.allSettled(runners.map((runner) => runner.stop().catch(() => {})));
    await Promise.allSettled([alive.end(), pool.end(), agent.destroy()]);
  }
}

/** Deliveries have slots of their own: they wait for receivers, and nothing else may wait for those. */
function pools(tasks: Record<string, Task>, { concurrency }: WorkerOptions, context: TaskContext): RunnerOptions[] {
  const { 'webhooks/deliver': deliver, ...others } = tasks;
  const jobsOf = (some: Record<string, Task>) =>
    Object.fromEntries(Object.entries(some).map(([name, task]) => [name, jobOf(task, context)]));
  return [
    { concurrency, taskList: jobsOf(others), preset: queue({ size: concurrency * 2 }) },
    { concurrency: concurrency * 2, taskList: jobsOf({ 'webhooks/deliver': deliver as Task }), preset: queue() },
  ];
}

/** Completions are written in batches: written one by one, a stop can leave finished jobs locked, which then run again. */
const queue = (localQueue?: { size: number }): NonNullable<RunnerOptions['preset']> => ({
  worker: {
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    gracefulShutdownAbortTimeout: 9_000,
    ...(localQueue ? { localQueue: { ...localQueue, ttl: 10_000 } } : {}),
  },
});

const jobOf =
  ({ payload, run: work }: Task, context: TaskContext): Job =>
  async (given) =>
    work(payload.parse(given), context);

async function startPool(options: RunnerOptions, pgPool: pg.Pool, alive: Liveness, log: Logger): Promise<Runner> {
  const events = new EventEmitter() as WorkerEvents;
  let pool_id: string | undefined;
  events.on('pool:create', ({ workerPool }) => {
    pool_id = workerPool.id;
  });
  const runner = await runJobs({
    ...options,
    pgPool,
    events,
    noHandleSignals: true,
    parsedCronItems: [],
    pollInterval: 1_000,
    logger: workerLogger(log),
  });
  runner.promise.catch(() => {});
  if (pool_id) await alive.addPool(pool_id);
  return runner;
}

/** Makes up for wake-ups that were lost: events that no job fanned out, lanes that no job delivers. */
async function sweep({ store }: TaskContext): Promise<void> {
  const [row] = await run<{ waiting: boolean }>(store.database, sql`select webhooks.sweep() as waiting`);
  if (row?.waiting) await fanOut(store.database);
}

/** "A worker's jobs are free again within 30 s of its death." */
async function bury({ store, log }: TaskContext): Promise<void> {
  const dead = await run<{ id: string }>(store.database, sql`select id from core.bury_dead_workers() as id`);
  if (dead.length === 0) return;
  const ids = dead.map(({ id }) => id);
  log.warn({ workers: ids }, 'workers died; their jobs are free again');
  await run(store.database, sql`select webhooks.free_leases(${ids})`);
}

/** Repeats work, never two at a time. What fails is tried again at the next turn. @returns what ends it */
function every(ms: number, work: () => Promise<void>, log: Logger): () => Promise<void> {
  let busy: Promise<void> | undefined;
  const timer = setInterval(() => {
    busy ??= work()
      .catch((error) => log.warn({ err: error }, 'housekeeping failed; it is tried again'))
      .finally(() => {
        busy = undefined;
      });
  }, ms);
  return async () => {
    clearInterval(timer);
    await busy;
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

const workerLogger = (log: Logger): WorkerLogger =>
  new WorkerLogger(() => (level, message, meta) => {
    if (level === 'error') log.error({ meta }, message);
    else if (level === 'warning') log.warn({ meta }, message);
    else log.trace(message);
  });
