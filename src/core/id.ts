import { typeid } from 'typeid-js';

/** A new id: the prefix and a UUIDv7 in base32 (TypeID), so that ids of one kind sort by the time they were made. */
export const newId = (prefix: string): string => typeid(prefix).toString();
