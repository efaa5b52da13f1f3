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
import sql, { raw } from 'sql-template-tag';
import type { z } from 'zod';
import { jobRan, watchPool } from '../metrics/metrics.ts';
import { letShrink } from '../pool/shrinking.ts';
import { type Database, run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { inSpan } from '../values/trace.ts';
import { logFailures } from './failed_job.ts';
import {
  batched_completions,
  concerns,
  isPoolSizeWarning,
  keepReturnable,
  type LostConnections,
  listenElsewhere,
  surviveLostConnections,
} from './graphile_worker_0_18.ts';
import type { LoadTask } from './task.ts';
import type { TaskContext } from './worker_context.ts';

/** Tasks whose jobs share slots. */
export interface PoolPlan {
  tasks: Record<string, LoadTask>;
  /** Jobs at a time. */
  slots: number;
}

/** A running pool of graphile-worker. */
export interface JobPool {
  pool_id: string;
  /** Settles when it takes no more jobs, whether it was stopped or could not go on. */
  ended: Promise<void>;
  /** The tasks whose jobs it runs. */
  tasks: string[];
  /** Looks for jobs. */
  nudge(): void;
  /** Looks for jobs, where the notification of new ones may be of its own. */
  hear(payload: string): void;
  stop(): Promise<unknown>;
}

/**
 * A pool for the tasks that have slots of their own, so that no other job waits for them, and one for all others.
 * @param own slots by task, for each job of the general pool; tasks that share slots stand in one name, separated by spaces
 */
export function planPools(
  tasks: Record<string, LoadTask>,
  concurrency: number,
  own: Record<string, number>,
): PoolPlan[] {
  const named = Object.keys(own).flatMap((names) => names.split(' '));
  const general = Object.entries(tasks).filter(([name]) => !named.includes(name));
  const tasksOf = (names: string) =>
    Object.fromEntries(names.split(' ').map((name) => [name, tasks[name] as LoadTask]));
  return [
    { tasks: Object.fromEntries(general), slots: concurrency },
    ...Object.entries(own).map(([names, slots]) => ({ tasks: tasksOf(names), slots: concurrency * slots })),
  ];
}

/** The connections that all pools of a worker share: one that each pool keeps to itself, and those that fetch and complete jobs (`leastOfWorker`). */
export interface JobConnections {
  pool: pg.Pool;
  /** Ends the pool. What is not returned in time, or ever, is cut off: it would keep the process running, and stay open in Postgres. */
  close(within_ms: number): Promise<void>;
}

/** @param most how many at each moment */
export function openJobConnections(
  url: string,
  most: () => number,
  log: Logger,
  lost: LostConnections,
): JobConnections {
  const pool = new pg.Pool({
    connectionString: url,
    max: most(),
    application_name: 'rail jobs',
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: poll_ms * 2,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  letShrink(pool, most);
  watchPool('jobs', pool);
  surviveLostConnections(pool, lost);
  listenElsewhere(pool);
  pool.on('error', (error) => logFailure(log, error, 'an idle connection of the job queue broke'));
  return { pool, close: closing(pool) };
}

function closing(pool: pg.Pool): JobConnections['close'] {
  const open = new Set<pg.PoolClient>();
  let isCutOff = false;
  const cutOff = (client: pg.PoolClient) => (client as unknown as pg.Client).connection.stream.destroy();
  pool.on('connect', (client) => {
    open.add(client);
    if (isCutOff) cutOff(client);
  });
  pool.on('remove', (client) => open.delete(client));
  return async (within_ms) => {
    await Promise.race([pool.end(), sleep(within_ms, undefined, { ref: false })]);
    isCutOff = true;
    for (const client of open) cutOff(client);
  };
}

/** The interval at which a pool looks for jobs without a notification. */
const poll_ms = 30_000;

/** Has those of the pools fetch that have jobs whose time has come, of which nobody is told: one look for all pools. */
export function nudgingDue(database: Database, pools: JobPool[]): () => Promise<void> {
  // The tasks stand in the text, and not as a value, so that it is planned once a connection.
  const tasks = raw(pg.escapeLiteral(JSON.stringify(pools.map((pool) => pool.tasks))));
  const look = sql`select p.nth::integer
    from json_array_elements(${tasks}::json) with ordinality as p (tasks, nth)
    where exists (
      select from graphile_worker._private_jobs j
      where j.is_available and j.run_at <= now() and j.task_id = any(array(
        select t.id from graphile_worker._private_tasks t
        where t.identifier in (select * from json_array_elements_text(p.tasks))
      ))
    )`;
  return async () => {
    for (const { nth } of await run<{ nth: number }>(database, look)) pools[nth - 1]?.nudge();
  };
}

export async function startJobPool(plan: PoolPlan, pgPool: pg.Pool, context: TaskContext): Promise<JobPool> {
  const events = new EventEmitter() as WorkerEvents;
  const created = once(events, 'pool:create');
  const ended = once(events, 'pool:gracefulShutdown').then(() => {});
  keepReturnable(events);
  logFailures(events, context.log);
  const runner = await runJobs({
    ...runnerOptions(plan, context),
    pgPool,
    events,
    noHandleSignals: true,
    parsedCronItems: [],
    pollInterval: poll_ms,
    logger: workerLogger(context.log),
  });
  runner.promise.catch(() => {});
  const [{ workerPool }] = await created;
  return {
    pool_id: workerPool.id,
    ended,
    tasks: Object.keys(plan.tasks),
    nudge: () => void workerPool.nudge(1),
    hear: (payload) => concerns(payload, plan.tasks) && workerPool.nudge(1),
    stop: async () => runner.stop().catch(() => {}),
  };
}

/** Jobs are fetched many at a time. */
const runnerOptions = ({ tasks, slots }: PoolPlan, context: TaskContext): RunnerOptions => ({
  concurrency: slots,
  taskList: Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, jobOf(name, task, context)])),
  preset: {
    worker: {
      ...batched_completions,
      gracefulShutdownAbortTimeout: 9_000,
      localQueue: { size: slots * 2, ttl: 10_000 },
    },
  },
});

const jobOf =
  (name: string, load: LoadTask, context: TaskContext): Job =>
  async (given, { job: { attempts, max_attempts } }) => {
    const begun = performance.now();
    const ended = (outcome: Parameters<typeof jobRan>[1]) => jobRan(name, outcome, performance.now() - begun);
    try {
      const { payload, run } = await load();
      const parsed = parsePayload(payload, given);
      const { traceparent: parent } = given as { traceparent?: string };
      // Sweeps and schedules begin no trace: nobody asked for them.
      if (parent === undefined) await run(parsed, context);
      else
        await inSpan(name, { parent, kind: 'consumer', attributes: { 'rail.attempt': attempts } }, () =>
          run(parsed, context),
        );
      ended('done');
    } catch (error) {
      ended(attempts < max_attempts ? 'retrying' : 'failed');
      throw error;
    }
  };

/** @throws Error that names the fields which are wrong, and holds no value */
export function parsePayload(payload: z.ZodType, given: unknown): unknown {
  const { success, data, error } = payload.safeParse(given);
  if (success) return data;
  const faults = error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`);
  throw new Error(`Wrong payload: ${faults.join('; ')}`);
}

/** Its own message about a failed job holds the whole payload: `logFailures` logs it instead. */
const workerLogger = (log: Logger): WorkerLogger =>
  new WorkerLogger(() => (level, message, meta) => {
    if (meta?.failure) return;
    if (level === 'error') log.error({ meta }, message);
    else if (level === 'warning' && !isPoolSizeWarning(message)) log.warn({ meta }, message);
    else log.trace(message);
  });
