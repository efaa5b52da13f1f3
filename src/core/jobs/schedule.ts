import cron, { type ScheduledTask } from 'node-cron';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { type Store, type Tx, transaction } from '../postgres/transaction.ts';
import { newId } from '../values/id.ts';

/** A job that runs at times of the clock (UTC). */
export interface Schedule {
  /** The task's identifier. */
  name: string;
  /** Five fields, minutes first. */
  cron: string;
  /** What to do about ticks that nobody was there for: run each, or only the latest, where that makes up for those before. */
  missed: 'each' | 'latest';
  /** The latest time that a run by hand may be as of, where one of later would do nothing. */
  latest?: (now: Date) => Date;
}

/** What a scheduled task gets: the run, which is the request id of all events that it causes, and the time that it is to go by. */
export const scheduled = z.object({ run_id: z.string(), tick: z.iso.datetime() });

const minute_ms = 60_000;

/** Ticks in this process, beside any number of others: each tick is run once. Begins by catching up what was missed. */
export async function startSchedule(
  store: Store,
  schedules: Schedule[],
  log: Logger,
): Promise<{ stop(): Promise<void> }> {
  await register(store, schedules);
  const runMinute = minuteOf(store, schedules, log);
  const clock = cron.schedule('* * * * *', ({ date }) => runMinute(date), {
    timezone: 'UTC',
    name: 'schedules',
    logger: cronLogger(log),
  });
  // A process that is busy or suspended at the minute, and a second later, is told so in place of it.
  clock.on('execution:missed', () => void runMinute(new Date()));
  await runMinute(new Date());
  return { stop: async () => clock.destroy() };
}

/**
 * Runs what is due of each schedule. Whatever was not run at its minute, because the process did not get to it or Postgres was away, is run at the
 * next: a month is too long to wait for the next tick.
 */
export function minuteOf(store: Store, schedules: Schedule[], log: Logger): (at: Date) => Promise<void> {
  const run_until = new Map<string, number>();
  const runSchedule = async (schedule: Schedule, at: Date): Promise<void> => {
    const after = run_until.get(schedule.name);
    if (after !== undefined && ticksBetween(schedule, after, at.getTime()).length === 0) return;
    try {
      await runDue(store, schedule, at);
      run_until.set(schedule.name, at.getTime());
    } catch (error) {
      logFailure(log, error, 'a tick failed; it is tried again within a minute', { schedule: schedule.name });
    }
  };
  return async (at) => {
    await Promise.all(schedules.map((schedule) => runSchedule(schedule, at)));
  };
}

/** Without it node-cron writes coloured lines among the JSON. */
const cronLogger = (log: Logger) => ({
  info: (message: string) => log.debug(message),
  warn: (message: string) => log.warn(message),
  error: (message: string | Error, err?: Error) => logError(log, 'error', message, err),
  debug: (message: string | Error, err?: Error) => logError(log, 'debug', message, err),
});

const logError = (log: Logger, level: 'error' | 'debug', message: string | Error, err?: Error): void =>
  log[level]({ err: message instanceof Error ? message : err }, message instanceof Error ? message.message : message);

/** Makes each schedule known: what is missed from now on is caught up. */
export async function register(store: Store, schedules: Schedule[]): Promise<void> {
  const names = schedules.map(({ name }) => name);
  await run(
    store.database,
    sql`insert into core.schedule (name, since) select name, now() from unnest(${names}::text[]) as name on conflict (name) do nothing`,
  );
}

/** Runs every tick up to `at` that has not run, as `missed` says. A run as of a later time, which `rail run` makes, holds none of them back. */
export async function runDue(store: Store, schedule: Schedule, at: Date): Promise<void> {
  const [known] = await run<{ last: string }>(
    store.database,
    sql`select coalesce((select max(r.tick) from core.scheduled_run r where r.name = s.name and r.tick <= ${at.toISOString()}::timestamptz), s.since) as last
      from core.schedule s where s.name = ${schedule.name}`,
  );
  if (!known) throw new Error(`The schedule '${schedule.name}' is not registered.`);
  for (const tick of ticksBetween(schedule, Date.parse(known.last), at.getTime())) {
    await transaction(store, { organization_id: null, request_id: null }, (tx) => runTick(tx, schedule.name, tick));
  }
}

/** Enqueues one tick's job, unless somebody has: the row and the job are one transaction. @returns the run's id */
export async function runTick(tx: Tx, name: string, tick: string): Promise<string | undefined> {
  const inserted = await tx.maybe<{ id: string }>(sql`
    insert into core.scheduled_run (id, name, tick) values (${newId('run')}, ${name}, ${tick}::timestamptz)
    on conflict on constraint scheduled_run_once do nothing
    returning id`);
  if (inserted) tx.enqueue(name, { run_id: inserted.id, tick });
  return inserted?.id;
}

/** The ticks after `after` up to `until` (milliseconds since 1970), oldest first; only the latest where that is enough. */
export function ticksBetween({ cron: expression, missed }: Schedule, after: number, until: number): string[] {
  const task: ScheduledTask = cron.createTask(expression, () => {}, { timezone: 'UTC' });
  const ticks: string[] = [];
  const latest = Math.floor(until / minute_ms) * minute_ms;
  for (let at = latest; at > after; at -= minute_ms) {
    if (!task.match(new Date(at))) continue;
    ticks.unshift(new Date(at).toISOString());
    if (missed === 'latest') break;
  }
  task.destroy();
  return ticks;
}
