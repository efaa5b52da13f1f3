import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import { register, runTick, type Schedule } from '../core/jobs/schedule.ts';
import { run } from '../core/postgres/database.ts';
import { type Store, transaction } from '../core/postgres/transaction.ts';
import { schedules } from '../products.ts';
import { answer, requireWorker, UsageError, warnWithoutWorker, withStore } from './command.ts';

const poll_ms = 100;

interface RunOptions {
  at?: string;
  wait?: boolean;
  json?: boolean;
}

/** `rail run`: a scheduled job, now, as if the clock showed `at`. */
export async function runSchedule(asked: string | undefined, { at, wait = false, json }: RunOptions): Promise<void> {
  const schedule = scheduleNamed(asked);
  const { name } = schedule;
  await withStore(async ({ store }) => {
    if (wait) await requireWorker(store, '--wait would wait forever');
    else await warnWithoutWorker(store, 'the job waits until one does');
    await register(store, schedules);
    const { run_id, tick } = await transaction(store, { organization_id: null, request_id: null }, async (tx) => {
      const tick = at ?? tx.now;
      refuseTooLate(schedule, tick, tx.now);
      return { run_id: await runTick(tx, name, tick), tick };
    });
    if (!run_id) throw new Error(`${name} has run as of ${tick} already: choose another --at, a second later.`);
    if (wait) await whenDone(store, run_id);
    const said = wait ? `Done: ${name} as of ${tick} (${run_id}).` : `Enqueued ${name} as of ${tick} (${run_id}).`;
    answer({ run_id, name, tick, done: wait }, { json, lines: [said] });
  });
}

function scheduleNamed(name: string | undefined): Schedule {
  const schedule = schedules.find((one) => one.name === name);
  if (schedule) return schedule;
  const why = name === undefined ? 'Give the name of a schedule.' : `There is no schedule '${name}'.`;
  throw new UsageError(`${why} Known: ${schedules.map((one) => one.name).join(' ')}`);
}

/** @throws UsageError for what would happen before its time, or do nothing */
function refuseTooLate({ name, latest = (now) => now }: Schedule, at: string, now: string): void {
  if (latest === 'any') return;
  const bound = latest(new Date(now));
  if (Date.parse(at) <= bound.getTime()) return;
  throw new UsageError(
    `${name} cannot run as of ${at}: by Postgres' clock, --at must be ${bound.toISOString()} or earlier.`,
  );
}

/** A run is done when neither its job nor any that follows from it is left. */
async function whenDone({ database }: Store, run_id: string): Promise<void> {
  for (;;) {
    const jobs = await run<{ last_error: string | null }>(
      database,
      sql`select j.last_error from graphile_worker._private_jobs j where j.payload ->> 'run_id' = ${run_id}`,
    );
    if (jobs.length === 0) return;
    const failed = jobs.find(({ last_error }) => last_error !== null);
    if (failed) throw new Error(`The job of ${run_id} failed, and is tried again: ${failed.last_error}`);
    await sleep(poll_ms);
  }
}
