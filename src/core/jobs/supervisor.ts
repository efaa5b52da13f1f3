import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { leastOfWorker } from '../postgres/connections.ts';
import { logFailure } from '../postgres/outage.ts';
import type { Store } from '../postgres/transaction.ts';
import type { Services } from '../resource/services.ts';
import { readTimeZones } from '../resource/time_zones.ts';
import { type Extension, poolsOf, slotsOf, type WorkerExtension } from './extension.ts';
import { channels, wasMigrated } from './graphile_worker_0_18.ts';
import { startHousekeeping } from './housekeeping.ts';
import { type JobConnections, type JobPool, openJobConnections, planPools, startJobPool } from './job_pool.ts';
import { type Liveness, proveLife } from './liveness.ts';
import { type Schedule, startSchedule } from './schedule.ts';
import { findTasks } from './task.ts';
import { partsByClass, type TaskContext, type WorkerContext } from './worker_context.ts';

export interface WorkerOptions {
  url: string;
  store: Store;
  services: Services;
  /** Jobs that run at a time, besides those of tasks with slots of their own. */
  concurrency: number;
  /** Connections of its own at each moment, besides those of the store: the least that a worker needs when left out. */
  connections?: () => number;
  log: Logger;
}

export interface SupervisorOptions extends WorkerOptions {
  schedules: Schedule[];
  extensions: Extension[];
}

export interface Worker {
  stop(): Promise<void>;
  /** Settles when it has started for the first time. */
  ready: Promise<void>;
}

interface Signals {
  stopping: AbortSignal;
  cut_off: AbortSignal;
}

/** The time in which running jobs must finish once the worker stops; then foreign calls are cut off. */
const grace_ms = 6_000;
/** Then what has not ended is left behind; its jobs are freed as those of the dead. */
const stop_ms = 7_500;
const abandon_ms = 1_500;
const close_ms = 1_000;
/** Before it is restarted: twice as long after each try that did not start it. */
const least_pause_ms = 500;
const most_pause_ms = 4_000;

/** Runs jobs until it is stopped. A worker that fails (Postgres went away, a pool broke) is restarted. */
export function superviseWorker(options: SupervisorOptions): Worker {
  const stopping = new AbortController();
  const cut_off = new AbortController();
  const ready = Promise.withResolvers<void>();
  const signals = { stopping: stopping.signal, cut_off: cut_off.signal };
  const finished = restartUntilStopped(options, signals, ready.resolve);
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

async function restartUntilStopped(options: SupervisorOptions, signals: Signals, ready: () => void): Promise<void> {
  const { stopping } = signals;
  let pause_ms = least_pause_ms;
  const started = () => {
    pause_ms = least_pause_ms;
    ready();
  };
  while (!stopping.aborted) {
    try {
      await runWorker(options, signals, started);
    } catch (error) {
      if (stopping.aborted) return;
      logFailure(options.log, error, 'the worker failed and is restarting');
    }
    await sleep(pause_ms, undefined, { signal: stopping }).catch(() => {});
    pause_ms = Math.min(pause_ms * 2, most_pause_ms);
  }
}

/** One run: from the session that proves it alive until it is stopped, or must be taken for dead. */
async function runWorker(options: SupervisorOptions, signals: Signals, ready: () => void): Promise<void> {
  const least = leastOfWorker(poolsOf(options.extensions));
  const { url, concurrency, connections: most = () => least, log } = options;
  const { stopping } = signals;
  await readTimeZones(options.store.database);
  const liveness = await proveLife(url);
  // From here on others may take what this worker holds: it begins nothing new, and cuts off what it is sending.
  const over = new AbortController();
  liveness.lost.then(() => over.abort());
  const context = contextOf(options, liveness, signals, over.signal);
  const extensions = await Promise.all(options.extensions.map(({ open }) => open(context, concurrency)));
  const connections = openJobConnections(url, () => most() - 1, log, {
    isOver: () => over.signal.aborted,
    onLost(error) {
      logFailure(log, error, 'the job queue lost its connection');
      over.abort();
    },
  });
  const started: Started = { pools: [], stops: [] };
  try {
    const parts = { context, extensions, connections, liveness, over: over.signal };
    await listen(started, parts, () => over.abort());
    await start(started, options, parts);
    ready();
    log.info({ worker_id: liveness.worker_id }, 'worker ready');
    await Promise.race([aborted(over.signal), aborted(stopping), ...started.pools.map(({ ended }) => ended)]);
  } finally {
    if (!stopping.aborted) over.abort();
    const ends = [
      ...started.pools.map(({ stop }) => stop()),
      ...started.stops.map((stop) => stop()),
      ...extensions.map(({ idle }) => idle()),
    ];
    await within(stopping.aborted ? stop_ms : abandon_ms, ends);
    await within(close_ms, [liveness.end(), connections.close(close_ms), ...extensions.map(({ close }) => close())]);
  }
}

function contextOf(
  { store, services, log }: SupervisorOptions,
  { worker_id }: Liveness,
  { stopping, cut_off }: Signals,
  over: AbortSignal,
): WorkerContext {
  return {
    ...{ store, services, log, worker_id },
    stopping: AbortSignal.any([stopping, over]),
    cut_off: AbortSignal.any([cut_off, over]),
  };
}

interface Started {
  pools: JobPool[];
  stops: (() => Promise<void>)[];
}

interface Parts {
  context: WorkerContext;
  extensions: WorkerExtension[];
  connections: JobConnections;
  liveness: Liveness;
  over: AbortSignal;
}

/** One session listens for the whole worker. */
async function listen({ pools }: Started, parts: Parts, onMigrated: () => void): Promise<void> {
  const { liveness, extensions, context } = parts;
  const hears: Record<string, (payload: string) => void> = {
    [channels.jobs](payload) {
      for (const pool of pools) pool.hear(payload);
    },
    [channels.migrations]: () =>
      void wasMigrated(context.store.database, liveness.worker_id).then((is_over) => is_over && onMigrated(), noop),
    ...Object.assign({}, ...extensions.map((one) => one.hears)),
  };
  for (const [channel, hear] of Object.entries(hears)) await liveness.listen(channel, hear);
}

/** A database that does not answer now ends the worker by itself. */
const noop = () => {};

/** Adds to `started` as it goes, so that what has started is stopped when the rest fails. */
async function start(started: Started, options: SupervisorOptions, parts: Parts): Promise<void> {
  const { concurrency, schedules } = options;
  const { context, extensions, connections, liveness, over } = parts;
  const task_context: TaskContext = { ...context, use: partsByClass(extensions.flatMap((one) => one.parts)) };
  for (const plan of planPools(await findTasks(), concurrency, slotsOf(options.extensions))) {
    const pool = await unless(over, startJobPool(plan, connections.pool, task_context));
    started.pools.push(pool);
    await liveness.addPool(pool.pool_id);
  }
  const schedule = await startSchedule(context.store, schedules, context.log);
  started.stops.push(() => schedule.stop(), ...startHousekeeping(context, extensions, started.pools));
}

/** Waits for all of this to end, but no longer than so. */
async function within(ms: number, ends: Promise<unknown>[]): Promise<void> {
  const timer = new AbortController();
  const late = sleep(ms, undefined, { signal: timer.signal }).catch(() => {});
  await Promise.race([Promise.allSettled(ends), late]);
  timer.abort();
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
