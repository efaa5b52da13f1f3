/** What is logged while Postgres is away: everything fails at once then, and for one reason. */
import { isUnavailable } from './errors.ts';

/** An outage is logged this long after it was logged last, and each time twice as long after, up to the most. */
const least_pause_ms = 2_000;
const most_pause_ms = 60_000;

interface Outage {
  logged_at: number;
  pause_ms: number;
}

/** The log of a process, in which an outage is said once for all that fails by it. */
interface Log {
  warn(details: object, message: string): void;
}

const outages = new WeakMap<object, Outage>();

/**
 * Logs what failed. That Postgres is away is one line for all that fails by it, without a stack, and again after a pause.
 * @param message what failed, and what follows, where Postgres is not away
 */
export function logFailure(log: Log, error: unknown, message: string, details: object = {}): void {
  if (isUnavailable(error)) logOutage(log, error);
  else log.warn({ err: error, ...details }, message);
}

/** @param now milliseconds of a steady clock */
export function logOutage(log: Log, error: unknown, now = performance.now()): void {
  const { logged_at, pause_ms } = outages.get(log) ?? { logged_at: -most_pause_ms, pause_ms: 0 };
  if (now < logged_at + pause_ms) return;
  const is_another = now > logged_at + 2 * most_pause_ms;
  const next_ms = is_another ? least_pause_ms : Math.min(Math.max(pause_ms * 2, least_pause_ms), most_pause_ms);
  outages.set(log, { logged_at: now, pause_ms: next_ms });
  const { message: reason, code } = error as { message?: string; code?: string };
  log.warn({ reason: reason || code }, 'Postgres cannot be reached; trying again');
}
