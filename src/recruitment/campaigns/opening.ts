import { day_ms, firstInstant, type LocalMs, localMs, minute_ms, startOfDay } from './local_time.ts';
import type { Schedule } from './schedule.ts';

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
