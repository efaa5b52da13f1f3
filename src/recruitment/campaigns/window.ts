/**
 * Decides when an email may be sent: pure functions of a schedule, a zone and a time. Offsets come from the platform's Intl.
 *
 * - A window is checked by what the clock shows. One in the hour that the clock skips does not exist on that day: the next one counts. An hour that the clock
 *   shows twice belongs to the window twice; a window that begins in it may close and open again. `to` may be `24:00`; a window never spans midnight.
 * - A follow-up is due `delay_days` calendar days after the last email, in the zone of the schedule, and never before that email.
 * - A day begins with its first instant: at 01:00 where the clock skips midnight.
 * - `recipient` needs one zone to a country. The zones of a country are those of `Intl.Locale.getTimeZones()`, the IANA table of the platform, so that no
 *   copy of it grows old here. Zones that show the same time all year are one; in countries with several the brand's zone is taken.
 * - No zone takes back a change of its offset within 7 days: `npm run soak -- windows` looks for one in every zone, over two years.
 */
import { z } from 'zod';
import { isKnownHere, zone_error, zoneNamed } from '../../core/values/time_zone.ts';

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

/** The times at which emails of a campaign may be sent. */
export const scheduleSchema = z
  .strictObject({ timezone: zone, days, from, to })
  // Times of two digits each sort as texts.
  .refine((window) => window.from < window.to, { path: ['to'], error: 'must be later than `from`' })
  .describe('The window in which emails may be sent: on `days`, from `from` until before `to`.');

export type Schedule = z.infer<typeof scheduleSchema>;

type Window = Pick<Schedule, 'days' | 'from' | 'to'>;

/** Returns whether `at` is on one of the days, in [from, to), by the clock of the zone. An hour that the clock shows twice counts twice. */
export function isOpen(schedule: Window, zone: string, at: Date): boolean {
  const local = localMs(zone, at.getTime());
  return openingFrom(schedule, local) === local;
}

/** The first instant at or after `at` that is in the window. A window that the clock skips on a day is not there on that day. */
export function nextOpening(schedule: Window, zone: string, at: Date): Date {
  return firstInstant(zone, at, (local) => openingFrom(schedule, local));
}

/**
 * The time at which a follow-up is due: the first instant in the window on the day that is `delay_days` calendar days in `zone` after the last email, or
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

/** The weekday by ISO 8601: the reading of a clock in UTC has the weekday of UTC. */
const weekday = (local: LocalMs): number => new Date(local).getUTCDay() || 7;

/** The zone whose clock a schedule goes by for one prospect. */
export function zoneOf(
  { timezone }: Pick<Schedule, 'timezone'>,
  prospect: { timezone: string | null; country_code: string | null },
  brand_timezone: string,
): string {
  if (timezone !== 'recipient') return knownZone(timezone);
  const own = prospect.timezone !== null && isKnownHere(prospect.timezone) ? prospect.timezone : undefined;
  return own ?? zoneOfCountry(prospect.country_code) ?? knownZone(brand_timezone);
}

/** A stored zone, or UTC where it is not known (any more): as core.zone(). */
export const knownZone = (name: string): string => (isKnownHere(name) ? name : 'UTC');

const zones_of_countries = new Map<string, string | undefined>();

/** The zone of a country all of whose zones show the same time. Undefined for others, and for what is no country. */
function zoneOfCountry(country_code: string | null): string | undefined {
  if (!country_code || !/^[A-Z]{2}$/.test(country_code)) return undefined;
  if (!zones_of_countries.has(country_code)) zones_of_countries.set(country_code, onlyZone(zonesOf(country_code)));
  return zones_of_countries.get(country_code);
}

/** TypeScript does not know the method yet. */
const zonesOf = (country_code: string): string[] =>
  (new Intl.Locale(`und-${country_code}`) as unknown as { getTimeZones(): string[] | undefined }).getTimeZones() ?? [];

/** Zones that have agreed since 2026, and do for as long as rules are known, are one: Berlin and Büsingen. */
function onlyZone([first, ...others]: string[]): string | undefined {
  return first && others.every((other) => agree(first, other)) ? first : undefined;
}

const compared_days = Array.from({ length: 3 * 53 }, (_, week) => Date.UTC(2026, 0, 1 + 7 * week));

const agree = (one: string, other: string): boolean =>
  compared_days.every((at) => localMs(one, at) === localMs(other, at));

/** Local time as milliseconds: those since 1970 of the same reading in UTC. */
type LocalMs = number;

const minute_ms = 60_000;
export const day_ms = 86_400_000;
/** No zone changes its offset and takes that back within this time. */
const step_ms = 7 * day_ms;

/** @throws RangeError for a zone that is not known */
function localMs(zone: string, at: number): LocalMs {
  return at + offsetMs(zone, at);
}

/** The day as `YYYY-MM-DD`. @throws RangeError for a zone that is not known */
export function dayIn(zone: string, at: Date): string {
  return new Date(localMs(zone, at.getTime())).toISOString().slice(0, 10);
}

/** The first instant after `at` that is on a later day in `zone`. Where clocks skip midnight, the day begins after the gap. */
export function nextMidnight(zone: string, at: Date): Date {
  const midnight = startOfDay(localMs(zone, at.getTime())) + day_ms;
  return firstInstant(zone, at, (local) => Math.max(local, midnight));
}

const startOfDay = (local: LocalMs): LocalMs => Math.floor(local / day_ms) * day_ms;

/**
 * The first instant at or after `at` whose local time `earliest` leaves as it is.
 * @param earliest the first local time at or after another one that is sought, by a clock that is never changed
 */
function firstInstant(zone: string, at: Date, earliest: (local: LocalMs) => LocalMs): Date {
  for (let start = at.getTime(); ; ) {
    const offset = offsetMs(zone, start);
    const found = earliest(start + offset) - offset;
    const end = Math.min(found, start + step_ms);
    const has_changed = offsetMs(zone, end) !== offset;
    if (end === found && !has_changed) return new Date(found);
    start = has_changed ? changeOf(zone, start, end) : end;
  }
}

/** The instant when the clock is changed that has another offset at `end` than at `start`. */
function changeOf(zone: string, start: number, end: number): number {
  const offset = offsetMs(zone, start);
  let before = start;
  let after = end;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetMs(zone, middle) === offset) before = middle;
    else after = middle;
  }
  return after;
}

/** Kept, because to make one takes much longer than to ask it. */
const clocks = new Map<string, Intl.DateTimeFormat>();

/** @throws RangeError for a zone that is not known, or a time that is invalid */
function offsetMs(zone: string, at: number): number {
  const clock = clocks.get(zone) ?? new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  clocks.set(zone, clock);
  // GMT, GMT+05:30, and GMT-00:44:30 of former days.
  const offset =
    clock
      .formatToParts(at)
      .find(({ type }) => type === 'timeZoneName')
      ?.value.slice('GMT'.length) ?? '';
  const [hours = 0, minutes = 0, seconds = 0] = offset.slice(1).split(':').map(Number);
  const size = ((hours * 60 + minutes) * 60 + seconds) * 1_000;
  return offset.startsWith('-') ? -size : size;
}
