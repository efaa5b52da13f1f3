import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { type KeyedHash, storedHash } from '../prospects/keyed_hash.ts';
import { type UnsubscribeToken, unsubscribeToken, verifies } from './unsubscribe_token.ts';

/** Of the service: the token follows. */
export const unsubscribe_path = '/recruitment/u';

/** The unsubscribe link of an email. It never expires. @param hash of the organization */
export const unsubscribeUrl = (
  hash: KeyedHash,
  base_url: string,
  ids: { organization_id: string; message_id: string },
): string => `${base_url}${unsubscribe_path}/${unsubscribeToken(keyOf(hash), ids)}`;

/** A key of its own: what tokens show of it says nothing of addresses. */
const keyOf = (hash: KeyedHash): Buffer => hash('unsubscribe tokens');

/** What the page shows of whom the link belongs to. */
export interface Linked {
  message_id: string;
  /** Null: not known, or erased. */
  language_code: string | null;
  /** Who sends: the company, else the brand. Null: the brand was deleted. */
  sender: string | null;
  /** By this link or otherwise. */
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
