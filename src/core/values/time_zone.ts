import { z } from 'zod';

/** The names that Postgres knows, by their names in lower case; undefined until it was asked. */
let names: Map<string, string> | undefined;

/** Learns the names that Postgres knows. */
export function learnTimeZones(known: string[]): void {
  names = new Map(known.map((name) => [name.toLowerCase(), name]));
}

/** The error of `timeZone`. */
export const zone_error =
  'must be an IANA time zone, such as Europe/Berlin or UTC. Abbreviations, such as CET, are not supported';

/**
 * A name of the tz database that both Postgres and this process know. Offsets are refused, whose sign Postgres reads the other way round, and so
 * are abbreviations: IST is one zone to Postgres and another one here. Kept as it is spelled there.
 */
export const timeZone = z
  .string()
  .max(64)
  .refine((name) => zoneNamed(name) !== undefined, zone_error)
  .overwrite((name) => zoneNamed(name) ?? name);

/** Returns the name in its own spelling. Undefined: it is none. */
export function zoneNamed(name: string): string | undefined {
  const known = names ? names.get(name.toLowerCase()) : /\/|^(UTC|GMT)$/.test(name) ? name : undefined;
  return known !== undefined && isKnownHere(known) ? known : undefined;
}

/** Returns whether this process knows a zone. */
export function isKnownHere(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}
