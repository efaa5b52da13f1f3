import { z } from 'zod';
import { zone_error, zoneNamed } from '../../../core/values/time_zone.ts';
import { day_ms, firstInstant, type LocalMs, localMs, minute_ms, startOfDay } from './local_time.ts';

const zone = z
  .string()
  .max(64)
  .refine((name) => name === 'recipient' || zoneNamed(name) !== undefined, `${zone_error}. Or \`recipient\``)
  .overwrite((name) => (name === 'recipient' ? name : (zoneNamed(name) ?? name)))
  .describe(
    "The IANA time zone of `days`, `from` and `to`. `recipient`: the time zone of each prospect, else that of its country if it has only one, else the brand's `default_timezone`.",
  );
const days = z
  .array(z.int().min(1).max(7))
  .min(1)
  .max(7)
  .refine((each) => new Set(each).size === each.length, 'must not name a day twice')
  .describe('The days on which emails may be sent, by ISO 8601: 1 is Monday, 7 is Sunday.');
const from = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time between 00:00 and 23:59, such as 09:00')
  .describe('The local time from which emails may be sent: `HH:MM`.');
const to = z
  .string()
  .regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, 'must be a time between 00:01 and 24:00, such as 17:00')
  .describe(
    'The local time until which emails may be sent, exclusive: `HH:MM`, later than `from`. `24:00` is midnight.',
  );

/** When emails of a campaign may be sent. */
export const scheduleSchema = z
  .strictObject({ timezone: zone, days, from, to })
  // Times of two digits each sort as texts.
  .refine((window) => window.from < window.to, { path: ['to'], error: 'must be later than `from`' })
  .describe('The window in which emails may be sent: on `days`, from `from` until before `to`.');

export type Schedule = z.infer<typeof scheduleSchema>;
type Window = Pick<Schedule, 'days' | 'from' | 'to'>;

/** Whether `at` is on one of the days, in [from, to), by the clock of the zone. An hour that the clock shows twice counts twice. */
export function isOpen(schedule: Window, zone: string, at: Date): boolean {
  const local = localMs(zone, at.getTime());
  return openingFrom(schedule, local) === local;
}

/** The first instant at or after `at` that is in the window. A window that the clock skips on a day is not there on that day. */
export function nextOpening(schedule: Window, zone: string, at: Date): Date {
  return firstInstant(zone, at, (local) => openingFrom(schedule, local));
}

/**
 * When a follow-up is due: the first instant in the window on the day that is `delay_days` calendar days in `zone` after the last email, or
 * later. Never before that email.
 */
export function dueAfter(schedule: Window, zone: string, last_sent_at: Date, delay_days: number): Date {
  const day = startOfDay(localMs(zone, last_sent_at.getTime())) + delay_days * day_ms;
  return firstInstant(zone, last_sent_at, (local) => openingFrom(schedule, Math.max(local, day)));
}

/** The first time at or after `local` that is in the window, by a clock that is never changed. */
function openingFrom({ days, from, to }: Window, local: LocalMs): LocalMs {
  const today = startOfDay(local);
  if (days.includes(weekday(today)) && local - today < timeOfDay(to)) return Math.max(local, today + timeOfDay(from));
  const days_ahead = Math.min(...days.map((day) => ((day - weekday(today) + 6) % 7) + 1));
  return today + days_ahead * day_ms + timeOfDay(from);
}

function timeOfDay(text: string): number {
  const [hours, minutes] = text.split(':').map(Number) as [number, number];
  return (hours * 60 + minutes) * minute_ms;
}

/** By ISO 8601: the reading of a clock in UTC has the weekday of UTC. */
const weekday = (local: LocalMs): number => new Date(local).getUTCDay() || 7;
