import { isKnownHere } from '../../core/values/time_zone.ts';
import { localMs } from './local_time.ts';
import type { Schedule } from './schedule.ts';

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
