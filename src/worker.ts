import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Task as Job,
  type RunnerOptions,
  run as runJobs,
  type WorkerEvents,
  Logger as WorkerLogger,
} from 'graphile-worker';
import pg from 'pg';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { proveLife } from './core/jobs/liveness.ts';
import { startSchedule } from './core/jobs/schedule.ts';
import { loadTasks, type Task, type TaskContext } from './core/jobs/task.ts';
import { watchPool } from './core/metrics/metrics.ts';
import { createPinnedAgent } from './core/net/agent.ts';
import { run, tries } from './core/postgres/database.ts';
import { isRetryable, isUnavailable } from './core/postgres/errors.ts';
import type { Store } from './core/postgres/transaction.ts';
import type { Services } from './core/resource/services.ts';
import { schedules } from './products.ts';
import { Deliverer } from './webhooks/queue/deliverer.ts';
import { FanOut } from './webhooks/queue/fan_out.ts';

export interface WorkerOptions {
  url: string;
  store: Store;
  services: Services;
  /** Jobs that run at a time, besides deliveries; ten times as many endpoints are delivered to at a time, and twice as many slow ones. */
  concurrency: number;
  log: Logger;
}

/** How long running jobs may take to finish once the worker stops; then foreign calls are cut off. */
const grace_ms = 6_000;
/** Then what has not ended is left behind; its jobs are freed as those of the dead. */
const stop_ms = 7_500;
const abandon_ms = 1_500;
const close_ms = 1_000;
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
  // From here on others may take what this life holds: it begins nothing new, and cuts off what it is sending.
  const over = new AbortController();
  alive.lost.then(() => over.abort());
  const agent = createPinnedAgent({
    allowPrivate: services.allow_private_addresses,
    ownHosts: services.own_hosts,
    nameServers: services.name_servers,
  });
  const basis = {
    ...{ store, services, log, worker_id: alive.worker_id },
    stopping: AbortSignal.any([stopping, over.signal]),
    cut_off: AbortSignal.any([cut_off, over.signal]),
  };
  const deliverer = new Deliverer({ ...basis, agent, slots: deliverySlots(options) });
  const fan_out = new FanOut({
    ...basis,
    database: store.database,
    take: (endpoint_ids) => deliverer.take(endpoint_ids),
  });
  const context: TaskContext = { ...basis, deliverer, fan_out };
  const connections = openQueue(options, over);
  const queues: Queue[] = [];
  const stops: (() => unknown)[] = [];
  try {
    for (const start of pools(await loadTasks(), options, context)) {
      const queue = await unless(over.signal, startQueue(start, connections, log));
      queues.push(queue);
      await alive.addPool(queue.pool_id);
    }
    const schedule = await startSchedule(store, schedules, log);
    stops.push(
      () => schedule.stop(),
      every(sweep_ms, () => sweep(context), log),
      every(janitor_ms, () => bury(context), log),
    );
    ready();
    log.info({ worker_id: alive.worker_id }, 'worker ready');
    await Promise.race([aborted(over.signal), aborted(stopping), ...queues.map(({ broke }) => broke)]);
  } finally {
    if (!stopping.aborted) over.abort();
    const ends = [
      ...queues.map(({ stop }) => stop()),
      ...stops.map(async (stop) => stop()),
      deliverer.settled(),
      fan_out.settled(),
    ];
    await within(stopping.aborted ? stop_ms : abandon_ms, Promise.allSettled(ends));
    await within(close_ms, Promise.allSettled([alive.end(), connections.end(), agent.destroy()]));
  }
}

/**
 * The connections of the job queue, which never hears that one is lost: graphile-worker 0.18 would end the process by a rejection that
 * nobody handles, wait for minutes, or never finish its shutdown. Instead the life is over, and what it asked stays unanswered. Nor does it
 * ask again when it lost a deadlock over the jobs that it has completed, but gives up its pool: so that is done here.
 */
function openQueue({ url, concurrency, log }: WorkerOptions, over: AbortController): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: Math.max(10, concurrency + 2),
    application_name: 'rail jobs',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  watchPool('jobs', pool);
  const isLost = (error: Error): boolean => {
    if (over.signal.aborted) return true;
    if (!isUnavailable(error) && !isRetryable(error)) return false;
    log.warn({ err: error }, 'the job queue lost its connection');
    over.abort();
    return true;
  };
  const orSilence = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error) => (isLost(error) ? new Promise<never>(() => {}) : Promise.reject(error)));

  const connect = pool.connect.bind(pool);
  pool.connect = ((callback?: Parameters<typeof connect>[0]) => {
    if (!callback) return orSilence(connect());
    connect((error, client, release) => {
      if (!error || !isLost(error)) callback(error, client, release);
    });
  }) as typeof pool.connect;
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    const ask = (given: unknown[], attempt: number): unknown => {
      const answer = query(...given);
      if (!(answer instanceof Promise)) return answer;
      const isLostDeadlock = (error: unknown) => isRetryable(error) && attempt < tries;
      return orSilence(
        answer.catch((error) => (isLostDeadlock(error) ? ask(given, attempt + 1) : Promise.reject(error))),
      );
    };
    client.query = ((...given: unknown[]) => ask(given, 1)) as typeof client.query;
    client.on('error', () => {});
  });
  return pool.on('error', (error) => log.warn({ err: error }, 'an idle connection of the job queue broke'));
}

/** Turns at a time: they wait for receivers, and hardly compute. */
const deliverySlots = ({ concurrency }: WorkerOptions): number => concurrency * 10;
const slowSlots = ({ concurrency }: WorkerOptions): number => concurrency * 2;

/** Deliveries have slots of their own, because they wait for receivers and nothing else may wait for those; so have those to slow ones. */
function pools(tasks: Record<string, Task>, options: WorkerOptions, context: TaskContext): RunnerOptions[] {
  const slots: Record<string, number> = {
    'webhooks/deliver': deliverySlots(options),
    'webhooks/deliver_slow': slowSlots(options),
  };
  const general = Object.entries(tasks).filter(([name]) => slots[name] === undefined);
  const poolOf = (some: [string, Task][], concurrency: number): RunnerOptions => ({
    concurrency,
    taskList: Object.fromEntries(some.map(([name, task]) => [name, jobOf(task, context)])),
    preset: queue(concurrency),
  });
  return [
    poolOf(general, options.concurrency),
    ...Object.entries(slots).map(([name, concurrency]) => poolOf([[name, tasks[name] as Task]], concurrency)),
  ];
}

/**
 * Jobs are fetched many at a time. Completions are written in batches: written one by one, a stop can leave finished jobs locked, which
 * then run again.
 */
const queue = (concurrency: number): NonNullable<RunnerOptions['preset']> => ({
  worker: {
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    gracefulShutdownAbortTimeout: 9_000,
    localQueue: { size: concurrency * 2, ttl: 10_000 },
  },
});

const jobOf =
  ({ payload, run: work }: Task, context: TaskContext): Job =>
  async (given) =>
    work(payload.parse(given), context);

/** A pool of graphile-worker. */
interface Queue {
  pool_id: string;
  /** Settles when it takes no more jobs, whether it was stopped or could not go on. */
  broke: Promise<void>;
  stop(): Promise<unknown>;
}

async function startQueue(options: RunnerOptions, pgPool: pg.Pool, log: Logger): Promise<Queue> {
  const events = new EventEmitter() as WorkerEvents;
  const created = once(events, 'pool:create');
  const broke = once(events, 'pool:gracefulShutdown').then(() => {});
  keepReturnable(events);
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
  const [{ workerPool }] = await created;
  return {
    pool_id: workerPool.id,
    broke,
    stop: async () => runner.stop().catch(() => {}),
  };
}

/**
 * graphile-worker 0.18 shuts down by force when it stops with jobs waiting in its local queue, because it refuses to return them unless
 * something else is going on there. So something is, until they are on their way.
 */
function keepReturnable(events: WorkerEvents): void {
  events.on('localQueue:init', ({ localQueue }) => {
    const busy = Promise.withResolvers<void>();
    (localQueue as unknown as { background(work: Promise<void>): void }).background(busy.promise);
    events.on('localQueue:setMode', ({ newMode }) => {
      if (newMode === 'RELEASED') setImmediate(busy.resolve);
    });
  });
}

/** Makes up for wake-ups that were lost: events that no job fanned out, lanes that no job delivers. */
async function sweep({ store, fan_out }: TaskContext): Promise<void> {
  const [row] = await run<{ waiting: boolean }>(store.database, sql`select webhooks.sweep() as waiting`);
  if (row?.waiting) await fan_out.run();
}

/** "A worker's jobs are free again within 30 s of its death." */
async function bury({ store, log }: TaskContext): Promise<void> {
  const dead = await run<{ id: string }>(store.database, sql`select id from core.bury_dead_workers() as id`);
  if (dead.length === 0) return;
  const ids = dead.map(({ id }) => id);
  log.warn({ workers: ids }, 'workers died; their jobs are free again');
  const [row] = await run<{ freed: string[] | null }>(
    store.database,
    sql`select webhooks.free_leases(${ids}) as freed`,
  );
  if (row?.freed) await run(store.database, sql`select webhooks.wake_lanes(${row.freed})`);
}

/** Repeats work from now on, never two at a time. What fails is tried again at the next turn. @returns what ends it */
function every(ms: number, work: () => Promise<void>, log: Logger): () => Promise<void> {
  let busy: Promise<void> | undefined;
  const turn = () => {
    busy ??= work()
      .catch((error) => log.warn({ err: error }, 'housekeeping failed; it is tried again'))
      .finally(() => {
        busy = undefined;
      });
  };
  turn();
  const timer = setInterval(turn, ms);
  return async () => {
    clearInterval(timer);
    await busy;
  };
}

/** Waits for work, but no longer than so. @returns whether it settled in time */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
  const came = await Promise.race([work.then(() => true), late]);
  timer.abort();
  return came;
}

/** @throws Error when the signal is aborted before the work is done */
const unless = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> =>
  Promise.race([
    work,
    aborted(signal).then(() => {
      throw new Error('Postgres was lost on the way.');
    }),
  ]);

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

const workerLogger = (log: Logger): WorkerLogger =>
  new WorkerLogger(() => (level, message, meta) => {
    if (level === 'error') log.error({ meta }, message);
    else if (level === 'warning' && !isOfPoolSize(message)) log.warn({ meta }, message);
    else log.trace(message);
  });

/** It wants a connection for each job; ours are fetched and completed many at a time, and do their own work over another pool. */
const isOfPoolSize = (message: string): boolean => message.includes('maxPoolSize');
