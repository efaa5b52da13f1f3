/** Computes when a rail is asked again about an attempt, as a pure function. */
import type { AttemptStatus } from '../attempt.ts';

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/**
 * Seconds from one call to the next, by how many there were; null: never again. What is open is asked about until it ends, its last wait over
 * and over. What is paid can come back for weeks, and what failed can still succeed: both are looked at a few times more, beside webhooks.
 */
const waits: Readonly<Record<AttemptStatus, { each: readonly number[]; last: number | null }>> = {
  prepared: { each: [], last: minute },
  in_doubt: { each: [minute, 2 * minute, 5 * minute, 15 * minute], last: hour },
  processing: { each: [minute, 5 * minute, 15 * minute, hour, 3 * hour, 6 * hour], last: 12 * hour },
  paid: { each: [day, 3 * day, 7 * day, 14 * day, 30 * day], last: null },
  failed: { each: [minute, hour, day, 7 * day], last: null },
  returned: { each: [], last: null },
};

/**
 * @param calls how often the rail was called since the attempt is in this status
 * @param retry_after_s what the rail asked for
 */
export function nextPollAt(status: AttemptStatus, calls: number, now: string, retry_after_s = 0): string | null {
  const { each, last } = waits[status];
  const wait = each[calls] ?? last;
  if (wait === null) return null;
  return new Date(Date.parse(now) + Math.max(wait, retry_after_s) * 1000).toISOString();
}
