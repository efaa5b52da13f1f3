/**
 * The unsubscribe link of an email, the footer that shows it, and what a token names: the two ids and 128 bits of HMAC-SHA256 in the digits of the ids, so that servers that change case or
 * cut punctuation do no harm. Tokens are made with a key derived from the organization's HMAC key: they outlive every rotation of the encryption key.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import sql from 'sql-template-tag';
import { TypeID } from 'typeid-js';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Footer } from '../composing/mail.ts';
import { type KeyedHash, storedHash } from '../prospects/keyed_hash.ts';

/** The path of the service: the token follows. */
export const unsubscribe_path = '/recruitment/u';

/** The unsubscribe link of an email. It never expires. @param hash of the organization */
export const unsubscribeUrl = (
  hash: KeyedHash,
  base_url: string,
  ids: { organization_id: string; message_id: string },
): string => `${base_url}${unsubscribe_path}/${unsubscribeToken(keyOf(hash), ids)}`;

/** The mailto: URL of List-Unsubscribe, whose mail names the message in its subject. */
export const unsubscribeMailto = (address: string, message_id: string): string =>
  `mailto:${encodeURIComponent(address).replace('%40', '@')}?subject=unsubscribe%20${encodeURIComponent(message_id)}`;

interface Footed {
  organization_id: string;
  message_id: string;
  inbox_email: string;
  brand: { name: string; sender_company: string | null; postal_address: string | null; privacy_url: string | null };
  /** The page that the address was found on. */
  source_url: string | null;
  language_code: string | null;
}

/** The footer of an email. @param hash of the organization */
export const footerOf = (hash: KeyedHash, base_url: string, { message_id, brand, ...email }: Footed): Footer => ({
  unsubscribe_url: unsubscribeUrl(hash, base_url, { organization_id: email.organization_id, message_id }),
  unsubscribe_mailto: unsubscribeMailto(email.inbox_email, message_id),
  sender_company: brand.sender_company ?? brand.name,
  postal_address: brand.postal_address ?? '',
  privacy_url: brand.privacy_url ?? '',
  found_at_url: email.source_url,
  language: email.language_code ?? 'en',
});

/** A key of its own: what tokens show of it says nothing of addresses. */
const keyOf = (hash: KeyedHash): Buffer => hash('unsubscribe tokens');

/** The person whom a link belongs to, as the page shows them. */
export interface Linked {
  message_id: string;
  /** Null: not known, or erased. */
  language_code: string | null;
  /** The sender: the company, else the brand. Null: the brand was deleted. */
  sender: string | null;
  /** True if they unsubscribed, by this link or otherwise. */
  is_unsubscribed: boolean;
}

/** The message that a token names, in a transaction of the organization that it names; undefined where the token is not of that organization. */
export async function readLink(tx: Tx, vault: Vault, token: UnsubscribeToken): Promise<Linked | undefined> {
  const hash = await storedHash(tx, vault);
  if (!hash || !verifies(keyOf(hash), token)) return undefined;
  return tx.maybe<Linked>(sql`
    select t.id as message_id, p.language_code, coalesce(b.sender_company, b.name) as sender,
      p.unsubscribed_at is not null as is_unsubscribed
    from recruitment.message t
    left join recruitment.prospect p on p.organization_id = t.organization_id and p.id = t.prospect_id
    left join recruitment.brand b on b.organization_id = t.organization_id and b.id = t.brand_id and b.deleted_at is null
    where ${tenant(tx)} and t.id = ${token.message_id}`);
}

/** The ids that an unsubscribe token names. Nothing of it is true before `verifies` says so. */
interface UnsubscribeToken {
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

/** Returns whether the key made the token. Takes the same time for every token. */
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
