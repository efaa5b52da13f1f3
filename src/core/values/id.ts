import { typeid } from 'typeid-js';
import { skewMs } from './clock.ts';

/**
 * A new id: the prefix and a UUIDv7 in base32 (TypeID), so that ids of one kind sort by the time they were made. By Postgres' clock: the weeks
 * that rows are kept in go by their ids.
 */
export function newId(prefix: string): string {
  const id = typeid(prefix).toString();
  const ahead_ms = skewMs();
  return ahead_ms === 0 ? id : `${id.slice(0, -26)}${idTimePart(timeOfId(id) - ahead_ms)}${id.slice(-16)}`;
}

const digits = '0123456789abcdefghjkmnpqrstvwxyz';

/** Returns the time at which an id was made, in milliseconds since 1970: its first ten characters. */
export const timeOfId = (id: string): number =>
  [...id.slice(-26, -16)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0);

/** Returns the characters that follow the prefix in ids of a moment: as core.id_time_part() in the database. */
export function idTimePart(time_ms: number): string {
  let rest = Math.max(0, time_ms);
  let text = '';
  for (let digit = 0; digit < 10; digit++) {
    text = digits.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
