/** How long a campaign takes: pure values. */
import { dailyLimit } from '../inboxes/limits.ts';

export interface Capable {
  daily_limit: number;
  ramp: { start: number; step: number } | null;
  min_gap_s: number;
  max_gap_s: number;
  /** Days on which it has sent. */
  days_that_sent: number;
}

interface Limits {
  /** Seconds in which emails may be sent on a day. */
  window_s: number;
  /** Days of the week on which they may. */
  days_a_week: number;
  daily_new_limit: number | null;
  /** Of the plan. */
  daily_sends: number | null;
}

const most_days = 3650;

/**
 * How many calendar days it takes, about, until every prospect was sent the first email: what inboxes may send on a day, one gap apart, with nothing else to
 * send. Null: more than ten years.
 */
export function daysFor(prospects: number, inboxes: Capable[], limits: Limits): number | null {
  let left = prospects;
  for (let day = 0; day < most_days; day++) {
    if (left <= 0) return Math.ceil((day * 7) / limits.days_a_week);
    left -= sentOn(day, inboxes, limits);
  }
  return null;
}

function sentOn(day: number, inboxes: Capable[], { window_s, daily_new_limit, daily_sends }: Limits): number {
  const each = inboxes.map((inbox) => {
    const gap_s = Math.max((inbox.min_gap_s + inbox.max_gap_s) / 2, 1);
    return Math.min(dailyLimit(inbox, inbox.days_that_sent + day), Math.ceil(window_s / gap_s));
  });
  const sum = each.reduce((total, one) => total + one, 0);
  return Math.min(sum, daily_new_limit ?? sum, daily_sends ?? sum);
}
