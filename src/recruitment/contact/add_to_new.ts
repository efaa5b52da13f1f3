/**
 * Addresses of prospects that are created in the same transaction, whose records say so from the start. They are made ready before it, and of an
 * address that nothing bars there is nothing to look up behind that: this is what makes imports fast.
 */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import { recordOfNew } from '../prospects/activity.ts';
import type { KeyedHash } from '../prospects/keyed_hash.ts';
import { hashesOf } from './address.ts';
import { openByHand } from './by_hand.ts';
import { insertOfNew, markBarred, type SealedAddress, seal } from './insert_address.ts';

/** An address of a prospect that does not exist yet. */
export type Intended = Omit<SealedAddress, 'prospect_id'>;

/** Makes an address ready that a person or the API names, for the prospect with this key. */
export type Intend = (email: string, key: string) => Intended;

/** @param hash of the organization */
export async function openIntend(vault: Vault, hash: KeyedHash): Promise<Intend> {
  const byHand = await openByHand();
  return (email, key) => {
    const { prospect_id: _, ...given } = byHand(email, { id: '', key });
    const id = newId('fea');
    return { ...given, ...hashesOf(hash, email), id, address: seal(vault, { id, email }) };
  };
}

/**
 * Returns the addresses that an entry bars, or whose domain one bars: their prospects are created as ones without a usable address, and `addToNew`
 * marks them. The caller holds suppressions, so that this stays true.
 */
export async function barredOf(tx: Tx, addresses: Intended[]): Promise<Set<Intended>> {
  if (addresses.length === 0) return new Set();
  const hashes = addresses.flatMap(({ address_hmac, domain_hmac }) => [address_hmac, domain_hmac]);
  const entries = await tx.all<{ hmac: Buffer }>(sql`
    select t.hmac from recruitment.suppression t
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(${hashes}::bytea[])`);
  if (entries.length === 0) return new Set();
  const barred = new Set(entries.map(({ hmac }) => textOf(hmac)));
  const isBarred = (hmac: Buffer) => barred.has(textOf(hmac));
  return new Set(addresses.filter((one) => isBarred(one.address_hmac) || isBarred(one.domain_hmac)));
}

const textOf = (hmac: Buffer): string => hmac.toString('base64');

/** An address of a prospect that was created. */
export interface OfNew {
  prospect_id: string;
  address: Intended;
  is_barred: boolean;
}

/**
 * Adds the one address of each of these prospects, which were created with `email_status` by `is_barred`. Tells `email.revealed` of those that
 * are usable, and marks those whose address is barred.
 */
export async function addToNew(tx: Tx, vault: Vault, given: OfNew[], by: Actor): Promise<void> {
  if (given.length === 0) return;
  insertOfNew(tx, given.map(added));
  recordOfNew(
    tx,
    'email_added',
    by,
    given.map(({ prospect_id, address: { source } }) => ({ prospect_id, data: { source, addresses: 1 } })),
  );
  const marked = given.filter(({ is_barred }) => is_barred).map(added);
  if (marked.length > 0) await markBarred(tx, vault, marked, by);
  for (const { prospect_id, address, is_barred } of given) {
    if (is_barred) continue;
    const { source, verification } = address;
    tx.emit(event('email.revealed', tx.organization_id, { prospect_id, source, verification, addresses: 1 }));
  }
}

const added = ({ prospect_id, address }: OfNew): SealedAddress => ({ ...address, prospect_id });
