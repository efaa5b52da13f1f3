import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import type { Chore, WorkerExtension } from './extension.ts';
import { type JobPool, nudgingDue } from './job_pool.ts';
import type { WorkerContext } from './worker_context.ts';

const nudge_every_ms = 1_000;
const reap_every_ms = 5_000;
const forget_every_ms = 30_000;
/** Chores begin apart, so that one connection, which has planned their statements, does for all. */
const apart_ms = 50;

/** Repeats the chores of the worker and of its extensions from now on. @returns what ends them */
export const startHousekeeping = (
  context: WorkerContext,
  extensions: WorkerExtension[],
  pools: JobPool[],
): (() => Promise<void>)[] =>
  [
    ...extensions.flatMap(({ chores }) => chores),
    ...[nudging(context, pools), reaping(context, extensions), forgetting(context)],
  ].map((chore, nth) => repeat(chore, nth * apart_ms, context.log));

/** A job that is not to run at once runs within a second of its time. */
const nudging = ({ store }: WorkerContext, pools: JobPool[]): Chore => ({
  every_ms: nudge_every_ms,
  run: nudgingDue(store.database, pools),
});

/** "A worker's jobs are free again within 30 s of its death." */
const reaping = ({ store, log }: WorkerContext, extensions: WorkerExtension[]): Chore => ({
  every_ms: reap_every_ms,
  async run() {
    const dead = await run<{ id: string }>(store.database, sql`select id from core.reap_dead_workers() as id`);
    if (dead.length === 0) return;
    const worker_ids = dead.map(({ id }) => id);
    log.warn({ workers: worker_ids }, 'workers died; their jobs are free again');
    for (const { freeFromDead } of extensions) await freeFromDead(worker_ids);
  },
});

/** Deletes the counts of the rate limit, which are valid for one second, and jobs that others replaced. */
const forgetting = ({ store }: WorkerContext): Chore => ({
  every_ms: forget_every_ms,
  async run() {
    await run(store.database, sql`select core.forget_past()`);
    await run(store.database, sql`select core.forget_superseded_jobs()`);
  },
});

/** Repeats a chore. One that fails is tried again at the next interval. */
function repeat({ every_ms, run: work }: Chore, after_ms: number, log: Logger): () => Promise<void> {
  let busy: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const tick = () => {
    busy ??= work()
      .catch((error) => logFailure(log, error, 'housekeeping failed; it is tried again'))
      .finally(() => {
        busy = undefined;
      });
  };
  const beginning = setTimeout(() => {
    timer = setInterval(tick, every_ms);
    tick();
  }, after_ms);
  return async () => {
    clearTimeout(beginning);
    clearInterval(timer);
    await busy;
  };
}
