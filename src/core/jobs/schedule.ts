import { setTimeout as sleep } from 'node:timers/promises';
import cron, { type ScheduledTask } from 'node-cron';
import type pg from 'pg';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { readClock } from '../metrics/clock.ts';
import { run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { type Store, type Tx, transaction } from '../postgres/transaction.ts';
import { most_skew_ms } from '../values/clock.ts';
import { newId } from '../values/id.ts';
import { service_opening } from './task.ts';

/** A job that runs at times of the clock (UTC). */
export interface Schedule {
  /** The task's identifier. */
  name: string;
  /** Five fields, minutes first. */
  cron: string;
  /** The handling of missed ticks: run each, or only the latest, where that makes up for those before. */
  missed: 'each' | 'latest';
  /** The latest time that an operator may run it as of: now, where left out. Any, where it deletes, pays and sends nothing. */
  latest?: ((now: Date) => Date) | 'any';
}

/** The payload of a scheduled task: the run, which is the request id of all events that it causes, and the time of its tick. */
export const scheduled = z.object({ run_id: z.string(), tick: z.iso.datetime() });

const minute_ms = 60_000;
const hour_ms = 60 * minute_ms;
const day_ms = 24 * hour_ms;
/** Ticks that were missed longer ago are not made up for. */
const most_missed_ms = 366 * day_ms;

/**
 * Ticks in this process, beside any number of others: each tick is run once. Begins by catching up what was missed. A minute is one of
 * Postgres' clock: a process whose own clock is wrong schedules nothing.
 */
export async function startSchedule(
  store: Store,
  schedules: Schedule[],
  log: Logger,
): Promise<{ stop(): Promise<void> }> {
  await register(store, schedules);
  const stopping = new AbortController();
  const runMinute = minuteOf(store, schedules, log);
  const tick = async (has_begun = false) => {
    const at = await minuteOfPostgres(store, log, has_begun, stopping.signal).catch((error) =>
      logFailure(log, error, 'a minute was passed over; its ticks are run with the next'),
    );
    if (at) await runMinute(at);
  };
  const clock = cron.schedule('* * * * *', () => tick(), {
    timezone: 'UTC',
    name: 'schedules',
    logger: cronLogger(log),
  });
  // A process that is busy or suspended at the minute, and a second later, is told so in place of it.
  clock.on('execution:missed', () => void tick());
  await tick(true);
  return {
    async stop() {
      stopping.abort();
      await clock.destroy();
    },
  };
}

/**
 * Returns the minute by Postgres' clock. Waits for it to begin, where the clock of this process is a little ahead. Undefined where that clock is
 * wrong, or the process stops.
 */
async function minuteOfPostgres(
  { database }: Store,
  log: Logger,
  has_begun: boolean,
  stopping: AbortSignal,
): Promise<Date | undefined> {
  const { now, is_off } = await readClock(database, log);
  if (is_off) return undefined;
  const left_ms = minute_ms - (now % minute_ms);
  if (has_begun || left_ms > most_skew_ms) return new Date(now);
  await sleep(left_ms, undefined, { signal: stopping }).catch(() => {});
  return stopping.aborted ? undefined : new Date(now + left_ms);
}

/**
 * Runs what is due of each schedule. Whatever was not run at its minute, because the process did not get to it or Postgres was away, is run at the
 * next: a month is too long to wait for the next tick.
 */
export function minuteOf(store: Store, schedules: Schedule[], log: Logger): (at: Date) => Promise<void> {
  const run_until = new Map<string, number>();
  const mayBeDue = (schedule: Schedule, at: Date): boolean => {
    const after = run_until.get(schedule.name);
    return after === undefined || ticksBetween(schedule, after, at.getTime()).length > 0;
  };
  return async (at) => {
    const asked = schedules.filter((schedule) => mayBeDue(schedule, at));
    if (asked.length === 0) return;
    try {
      await runDue(store, asked, at);
      for (const { name } of asked) run_until.set(name, at.getTime());
    } catch (error) {
      logFailure(log, error, 'the ticks of a minute failed; they are tried again within a minute');
    }
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

/** Returns the delay of each schedule, in seconds, by its oldest tick that has not run. One that nobody has registered yet has none. */
export async function lateSchedules(
  on: Pick<pg.ClientBase, 'query'>,
  schedules: Schedule[],
): Promise<{ name: string; late_s: number }[]> {
  const known = await run<{ name: string; last: string; now: string }>(
    on as pg.Pool,
    sql`select
        s.name, clock_timestamp() as now,
        coalesce((select max(r.tick) from core.scheduled_run r where r.name = s.name and r.tick <= now()), s.since) as last
      from core.schedule s`,
  );
  return schedules.map((schedule) => {
    const row = known.find(({ name }) => name === schedule.name);
    const missed = row && firstTick(schedule, Date.parse(row.last), Date.parse(row.now));
    return { name: schedule.name, late_s: row && missed ? (Date.parse(row.now) - missed) / 1_000 : 0 };
  });
}

/**
 * Runs every tick of these schedules up to `at` that has not run, as `missed` says. A run as of a later time, which `rail run` makes, holds none of
 * them back.
 */
export async function runDue(store: Store, schedules: Schedule[], at: Date): Promise<void> {
  const lasts = await run<{ name: string; last: string }>(
    store.database,
    sql`select s.name, coalesce((select max(r.tick) from core.scheduled_run r where r.name = s.name and r.tick <= ${at.toISOString()}::timestamptz), s.since) as last
      from core.schedule s where s.name = any (${schedules.map(({ name }) => name)}::text[])`,
  );
  const last_of = new Map(lasts.map(({ name, last }) => [name, Date.parse(last)]));
  const due = schedules.flatMap((schedule) => {
    const last = last_of.get(schedule.name);
    if (last === undefined) throw new Error(`The schedule '${schedule.name}' is not registered.`);
    return ticksBetween(schedule, last, at.getTime()).map((tick) => ({ name: schedule.name, tick }));
  });
  if (due.length > 0) await transaction(store, service_opening, (tx) => runTicks(tx, due));
}

/** Enqueues one tick's job, unless somebody has. @returns the run's id */
export const runTick = async (tx: Tx, name: string, tick: string): Promise<string | undefined> =>
  (await runTicks(tx, [{ name, tick }]))[0];

/** Enqueues the jobs of ticks, but of those that somebody has enqueued: a row and its job are one transaction. @returns the runs' ids */
async function runTicks(tx: Tx, ticks: { name: string; tick: string }[]): Promise<string[]> {
  const runs = ticks.map((each) => ({ id: newId('run'), ...each }));
  const inserted = await tx.all<{ id: string }>(sql`
    insert into core.scheduled_run (id, name, tick)
    select r.id, r.name, r.tick from json_to_recordset(${JSON.stringify(runs)}::json) as r (id text, name text, tick timestamptz)
    on conflict on constraint scheduled_run_once do nothing
    returning id`);
  const begun = new Set(inserted.map(({ id }) => id));
  const own = runs.filter(({ id }) => begun.has(id));
  for (const { id, name, tick } of own) tx.enqueue(name, { run_id: id, tick });
  return own.map(({ id }) => id);
}

/**
 * The ticks after `after` up to `until` (milliseconds since 1970), oldest first; only the latest where that is enough. None that was missed for
 * more than a year.
 */
export function ticksBetween({ cron: expression, missed }: Schedule, after: number, until: number): string[] {
  const first = Math.max(after, until - most_missed_ms);
  const found =
    missed === 'latest' ? ticksOf(expression, first, until, 'back').take(1) : ticksOf(expression, first, until);
  return [...found].map((at) => new Date(at).toISOString());
}

/** The first of the ticks after `after` up to `until`, in milliseconds since 1970. */
export const firstTick = (
  { cron: expression }: Pick<Schedule, 'cron'>,
  after: number,
  until: number,
): number | undefined => ticksOf(expression, Math.max(after, until - most_missed_ms), until).next().value ?? undefined;

function* ticksOf(expression: string, after: number, until: number, order: 'on' | 'back' = 'on') {
  const { isDay, times } = timesOf(expression);
  const ordered = order === 'on' ? times : times.toReversed();
  for (const day of daysOf(after, until, order)) {
    if (!isDay(day)) continue;
    for (const time of ordered) if (day + time > after && day + time <= until) yield day + time;
  }
}

function* daysOf(after: number, until: number, order: 'on' | 'back') {
  const [first, last] = [after, until].map((at) => Math.floor(at / day_ms) * day_ms) as [number, number];
  if (order === 'on') for (let day = first; day <= last; day += day_ms) yield day;
  else for (let day = last; day >= first; day -= day_ms) yield day;
}

interface Times {
  isDay(day: number): boolean;
  /** Within such a day. */
  times: number[];
}

const known = new Map<string, Times>();

/** Returns the ticks of an expression. node-cron matches one time at a time, and slowly: day, hour and minute are asked for apart. */
function timesOf(expression: string): Times {
  const found = known.get(expression) ?? readTimes(expression);
  known.set(expression, found);
  return found;
}

function readTimes(expression: string): Times {
  const [minute, hour, ...day] = expression.split(' ');
  const matching = (fields: string) => {
    const task: ScheduledTask = cron.createTask(fields, () => {}, { timezone: 'UTC' });
    task.destroy();
    return (at: number) => task.match(new Date(at));
  };
  const starts = (size: number, ms: number) => Array.from({ length: size }, (_, nth) => nth * ms);
  const hours = starts(24, hour_ms).filter(matching(`* ${hour} * * *`));
  const minutes = starts(60, minute_ms).filter(matching(`${minute} * * * *`));
  return { isDay: matching(`* * ${day.join(' ')}`), times: hours.flatMap((at) => minutes.map((after) => at + after)) };
}
