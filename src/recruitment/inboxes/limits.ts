/** Limits of an inbox: how many emails it sends, and how far apart. */

/**
 * The most emails of an inbox on a day: a ramp begins with `start`, and each day that sent adds `step`, up to the inbox's limit.
 * @param days_that_sent_before before this day
 */
export function dailyLimit(
  { daily_limit, ramp }: { daily_limit: number; ramp: { start: number; step: number } | null },
  days_that_sent_before: number,
): number {
  return ramp ? Math.min(daily_limit, ramp.start + ramp.step * days_that_sent_before) : daily_limit;
}

/**
 * The time between an email and the next one, in whole seconds: each value of the range is equally likely.
 * @param random from 0 to less than 1
 */
export function gapSeconds({ min_gap_s, max_gap_s }: { min_gap_s: number; max_gap_s: number }, random: number): number {
  return min_gap_s + Math.floor(random * (max_gap_s - min_gap_s + 1));
}
