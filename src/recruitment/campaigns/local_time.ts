/** The clocks of IANA zones, as the platform's Intl knows them. */

/** Local time as milliseconds: those since 1970 of the same reading in UTC. */
export type LocalMs = number;

export const minute_ms = 60_000;
export const day_ms = 86_400_000;
/** No zone changes its offset and takes that back within this time. */
const step_ms = 7 * day_ms;

/** @throws RangeError for a zone that is not known */
export function localMs(zone: string, at: number): LocalMs {
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

export const startOfDay = (local: LocalMs): LocalMs => Math.floor(local / day_ms) * day_ms;

/**
 * The first instant at or after `at` whose local time `earliest` leaves as it is.
 * @param earliest the first local time at or after another one that is sought, by a clock that is never changed
 */
export function firstInstant(zone: string, at: Date, earliest: (local: LocalMs) => LocalMs): Date {
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
