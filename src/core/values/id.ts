import { typeid } from 'typeid-js';

/** A new id: the prefix and a UUIDv7 in base32 (TypeID), so that ids of one kind sort by the time they were made. */
export const newId = (prefix: string): string => typeid(prefix).toString();

const digits = '0123456789abcdefghjkmnpqrstvwxyz';

/** When an id was made, in milliseconds since 1970: its first ten characters. */
export const timeOfId = (id: string): number =>
  [...id.slice(-26, -16)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0);
