/**
 * The time by Postgres' clock, as this process knows it. What is stored, deleted, paid or sent goes by it, or by `tx.now`: the clock of one
 * process may be wrong.
 */

/** By how much the clock of a process may differ. */
export const most_skew_ms = 5_000;
/** An answer that was longer on its way says too little of the time. */
const most_wait_ms = 1_000;

/** Postgres' clock less the steady one of this process. */
let offset_ms: number | undefined;

/**
 * Learns what Postgres' clock showed.
 * @param asked when it was asked, by `performance.now()`
 * @param answered when the answer was there
 */
export function learnTime(shown_ms: number, asked: number, answered: number): void {
  if (offset_ms !== undefined && answered - asked > most_wait_ms) return;
  offset_ms = shown_ms - (asked + answered) / 2;
}

/** Milliseconds since 1970. By the clock of this process until Postgres was asked. */
export const databaseTime = (): number =>
  offset_ms === undefined ? Date.now() : Math.floor(performance.now() + offset_ms);

/** The whole seconds, in milliseconds, by which the clock of this process is ahead; 0 while it differs by no more than it may. */
export function skewMs(): number {
  const ahead_ms = Date.now() - databaseTime();
  return Math.abs(ahead_ms) > most_skew_ms ? Math.round(ahead_ms / 1_000) * 1_000 : 0;
}
