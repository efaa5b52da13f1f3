import type { Campaign } from './campaign.ts';
import { dueAfter, nextOpening } from './opening.ts';
import { zoneOf } from './zone.ts';

const day_ms = 86_400_000;

interface Prospect {
  timezone: string | null;
  country_code: string | null;
}

/** The time of the first email to a prospect, from `now` on. Most prospects share a zone: a function of the zone is asked once for each. */
export function firstDueAt({ schedule, steps }: Campaign, brand_timezone: string, now: Date): (of: Prospect) => Date {
  const delay_days = steps[0]?.delay_days ?? 0;
  const known = new Map<string, Date>();
  return (prospect) => {
    const zone = zoneOf(schedule, prospect, brand_timezone);
    const due = known.get(zone) ?? dueAfter(schedule, zone, now, delay_days);
    known.set(zone, due);
    return due;
  };
}

/** The time of the next email of a sequence that has begun, or of its end after the last one. Never before `now`. */
export function nextDueAt(
  { schedule, steps, reply_wait_days }: Campaign,
  brand_timezone: string,
  prospect: Prospect,
  { next_step, last_sent_at }: { next_step: number; last_sent_at: Date | null },
  now: Date,
): Date {
  const step = steps[next_step];
  if (last_sent_at && !step) return later(now, new Date(last_sent_at.getTime() + reply_wait_days * day_ms));
  const zone = zoneOf(schedule, prospect, brand_timezone);
  const due = last_sent_at && step ? dueAfter(schedule, zone, last_sent_at, step.delay_days) : now;
  return due > now ? due : nextOpening(schedule, zone, now);
}

const later = (one: Date, other: Date): Date => (one > other ? one : other);
