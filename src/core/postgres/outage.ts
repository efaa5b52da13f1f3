/** Logs once while Postgres is away, full or busy: everything fails at once then, and for one reason. */
import type pg from 'pg';
import { isUnavailable } from './errors.ts';

/** An outage is logged this long after it was logged last, and each time twice as long after, up to the most. */
const least_pause_ms = 2_000;
const most_pause_ms = 60_000;

const disk_full = '53100';

interface Outage {
  logged_at: number;
  pause_ms: number;
}

/** The log of a process, in which an outage is said once for all that fails by it. */
interface Log {
  warn(details: object, message: string): void;
}

/** By log, and by what is the matter. */
const outages = new WeakMap<object, Map<string, Outage>>();

/** The causes of an outage, by the error code of Postgres; else it cannot be reached. */
const matters: Record<string, string> = {
  [disk_full]: 'Postgres has no space left on its disk; trying again',
  '53300': 'Postgres has no connections left; trying again',
  '25006': 'Postgres takes no writes: it is a replica, or read-only; trying again',
  '55P03': 'requests wait too long for locks',
  '57014': 'statements of requests take too long',
  service_unavailable: 'requests are answered 503',
};
const away = 'Postgres cannot be reached; trying again';

/** True if a write of this process found the disk full, and none was seen to succeed since. */
let found_disk_full = false;

/**
 * Once the disk was full, a small table that is gone at once shows whether there is space again: only then is anything written to find out.
 * @returns why this process is not ready; undefined where writes succeed, as far as is known
 */
export async function whyNoSpace(on: Pick<pg.Pool, 'query'>): Promise<string | undefined> {
  if (!found_disk_full) return undefined;
  try {
    await on.query(
      `create temporary table rail_space on commit drop as select repeat('x', 1000) from generate_series(1, 100)`,
    );
    found_disk_full = false;
    return undefined;
  } catch (error) {
    if ((error as { code?: string }).code !== disk_full) throw error;
    return 'Postgres has no space left on its disk: reads are answered, and writes are not.';
  }
}

/**
 * Logs what failed. That Postgres is away is one line for all that fails by it, without a stack, and again after a pause.
 * @param message what failed, and what follows, where Postgres is not away
 */
export function logFailure(log: Log, error: unknown, message: string, details: object = {}): void {
  if (isUnavailable(error)) logOutage(log, error);
  else log.warn({ err: error, ...details }, message);
}

/**
 * One line for all that fails by the same, without a stack.
 * @param now milliseconds of a steady clock
 */
export function logOutage(log: Log, error: unknown, now = performance.now()): void {
  const { message: reason, code = '' } = error as { message?: string; code?: string };
  if (code === disk_full) found_disk_full = true;
  const matter = matters[code] ?? away;
  const known = outages.get(log) ?? new Map<string, Outage>();
  outages.set(log, known);
  const { logged_at, pause_ms } = known.get(matter) ?? { logged_at: -most_pause_ms, pause_ms: 0 };
  if (now < logged_at + pause_ms) return;
  const is_another = now > logged_at + 2 * most_pause_ms;
  const next_ms = is_another ? least_pause_ms : Math.min(Math.max(pause_ms * 2, least_pause_ms), most_pause_ms);
  known.set(matter, { logged_at: now, pause_ms: next_ms });
  log.warn({ reason: reason || code }, matter);
}
