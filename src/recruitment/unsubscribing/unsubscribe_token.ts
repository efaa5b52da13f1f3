import { createHmac, timingSafeEqual } from 'node:crypto';
import { TypeID } from 'typeid-js';

/** Whom an unsubscribe token names. Nothing of it is true before `verifies` says so. */
export interface UnsubscribeToken {
  organization_id: string;
  message_id: string;
  mac: Buffer;
}

type Ids = Pick<UnsubscribeToken, 'organization_id' | 'message_id'>;

/**
 * The token of an unsubscribe link: 26 digits of base32 each for the organization, the message and 128 bits of HMAC-SHA256. It never expires.
 * @param key of the organization
 */
export const unsubscribeToken = (key: Buffer, ids: Ids): string =>
  suffixOf('org', ids.organization_id) + suffixOf('fms', ids.message_id) + digitsOf(macOf(key, ids));

/** Reads a token in upper or lower case; null for any other text. */
export function readUnsubscribeToken(text: string): UnsubscribeToken | null {
  const [, organization, message, mac] = form.exec(text.slice(0, 100).toLowerCase()) ?? [];
  if (!organization || !message || !mac) return null;
  return { organization_id: `org_${organization}`, message_id: `fms_${message}`, mac: bytesOf(mac) };
}

/** Whether the key made the token. Takes the same time for every token. */
export const verifies = (key: Buffer, { mac, ...ids }: UnsubscribeToken): boolean => {
  const expected = macOf(key, ids);
  return mac.length === expected.length && timingSafeEqual(mac, expected);
};

/** 128 bits in base32: the first of 26 digits holds 3 bits. */
const digits = '[0-7][0-9a-hjkmnp-tv-z]{25}';
const form = new RegExp(`^(${digits})(${digits})(${digits})$`);

function suffixOf(prefix: string, id: string): string {
  if (!new RegExp(`^${prefix}_${digits}$`).test(id)) throw new TypeError(`not an id of the kind ${prefix}: ${id}`);
  return id.slice(-26);
}

/** The key hashes other things too: what it signs here begins with words of its own. */
const macOf = (key: Buffer, { organization_id, message_id }: Ids): Buffer =>
  createHmac('sha256', key).update(`unsubscribe ${organization_id} ${message_id}`).digest().subarray(0, 16);

const digitsOf = (bytes: Buffer): string => TypeID.fromUUIDBytes('', bytes).getSuffix();
const bytesOf = (suffix: string): Buffer => Buffer.from(TypeID.fromString(suffix).toUUIDBytes());
