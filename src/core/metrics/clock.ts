/** Measures the difference between the clock of this process and Postgres'. */
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { learnTime, most_skew_ms } from '../values/clock.ts';
import { gauge } from './registry.ts';

const look_every_ms = 60_000;
const step_every_ms = 1_000;

let skew_ms: number | undefined;
/** The difference that was logged last: 0 where none was, or all is well. */
let logged_ms = 0;

gauge(
  'rail_clock_skew_seconds',
  {
    help: "How far the clock of this process is ahead of Postgres' clock; negative if it is behind. Beyond 5 seconds, this process schedules no jobs.",
    row: 'Is it well',
    title: 'Clock skew of processes',
    alerts: [
      {
        name: 'RailClockSkew',
        expr: 'max(abs(rail_clock_skew_seconds)) > 5',
        for: '2m',
        severity: 'warning',
        summary: "The clock of a process differs from Postgres' by more than five seconds.",
        remedy:
          'Synchronize the clocks of both machines (NTP). Until they agree, a worker with a wrong clock schedules no jobs.',
      },
    ],
  },
  [],
  (skew) => {
    if (skew_ms !== undefined) skew.set(skew_ms / 1_000);
  },
);

export interface ClockReading {
  /** Postgres' time, in milliseconds since 1970. */
  now: number;
  /** True if the clock of this process differs by more than it may. */
  is_off: boolean;
}

/** Asks Postgres what time it is. The log says when the clock of this process differs, and when that changes. */
export async function readClock(database: Database, log: Logger): Promise<ClockReading> {
  const [before, asked] = [Date.now(), performance.now()];
  const [row] = await run<{ now: number }>(
    database,
    sql`select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now`,
  );
  const [after, answered] = [Date.now(), performance.now()];
  const now = row?.now as number;
  learnTime(now, asked, answered);
  // Less than the way there and back takes cannot be measured.
  skew_ms = Math.max(before - now, 0) + Math.min(after - now, 0);
  const is_off = Math.abs(skew_ms) > most_skew_ms;
  logSkew(is_off ? skew_ms : 0, log);
  return { now, is_off };
}

function logSkew(off_ms: number, log: Logger): void {
  const is_logged = Math.abs(off_ms - logged_ms) <= most_skew_ms && (off_ms === 0) === (logged_ms === 0);
  if (is_logged) return;
  logged_ms = off_ms;
  const skew_s = Math.round(off_ms / 1_000);
  if (skew_s === 0) log.info("The clock of this process agrees with Postgres' again.");
  else
    log.warn(
      { skew_s },
      `The clock of this process is ${Math.abs(skew_s)} seconds ${skew_s > 0 ? 'ahead of' : 'behind'} Postgres'. It schedules no jobs until they agree: synchronize the clocks (NTP).`,
    );
}

/**
 * Looks at the clock now, each minute from then on, and when the clock of this process goes on by another time than the steady one: it was set,
 * or the machine has slept, which the steady one does not count.
 * @returns what ends that
 */
export async function watchClock(database: Database, log: Logger): Promise<() => void> {
  let looked = 0;
  let difference = 0;
  const look = () => {
    looked = performance.now();
    difference = Date.now() - looked;
    return readClock(database, log).catch((error) => logFailure(log, error, 'the clock of Postgres was not read'));
  };
  const isLate = () => performance.now() - looked >= look_every_ms;
  const isSet = () => Math.abs(Date.now() - performance.now() - difference) > step_every_ms;
  await look();
  const timer = setInterval(() => (isLate() || isSet()) && look(), step_every_ms).unref();
  return () => clearInterval(timer);
}
