/**
 * Addresses of prospects that are created in the same transaction, whose records say so from the start. Of an address that nothing bars there is
 * nothing to look up behind that: this is what makes imports fast.
 */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import type { NewProspect } from '../prospects/create.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { hashesOf } from './address.ts';
import { byHand } from './by_hand.ts';
import { type HashedAddress, insertHashed, markBarred, recordAdded } from './insert_address.ts';

/** An address of a prospect that does not exist yet. */
export type Intended = Omit<HashedAddress, 'prospect_id'> & {
  /** Whether an entry bars it or its domain: the prospect is created as one without a usable address, and `addToNew` marks it. */
  is_barred: boolean;
};

interface WithAddress {
  prospect: Pick<NewProspect, 'key'>;
  email?: string | undefined;
}

/** The addresses that prospects are to be created with, in their order. The caller holds suppressions, so that this stays true. */
export async function intendedAddresses(tx: Tx, vault: Vault, rows: WithAddress[]): Promise<(Intended | undefined)[]> {
  const hash = await keyedHash(tx, vault);
  const intended = await Promise.all(
    rows.map(async ({ prospect: { key }, email }) =>
      email === undefined ? undefined : { ...(await byHand(email, { id: '', key })), ...hashesOf(hash, email) },
    ),
  );
  const hashes = intended.flatMap((one) => (one ? [one.address_hmac, one.domain_hmac] : []));
  const barred = await barredOf(tx, hashes);
  return intended.map(
    (one) => one && { ...one, is_barred: barred.has(textOf(one.address_hmac)) || barred.has(textOf(one.domain_hmac)) },
  );
}

const textOf = (hmac: Buffer): string => hmac.toString('base64');

async function barredOf(tx: Tx, hashes: Buffer[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const entries = await tx.all<{ hmac: Buffer }>(sql`
    select t.hmac from recruitment.suppression t
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(${hashes}::bytea[])`);
  return new Set(entries.map(({ hmac }) => textOf(hmac)));
}

/**
 * Adds the one address of each of these prospects, which were created with `email_status` by `is_barred`. Tells `email.revealed` of those that
 * are usable, and marks those whose address is barred.
 */
export async function addToNew(
  tx: Tx,
  vault: Vault,
  given: (Intended & { prospect_id: string })[],
  by: Actor,
): Promise<void> {
  if (given.length === 0) return;
  const barred = new Set(given.filter(({ is_barred }) => is_barred).map(({ prospect_id }) => prospect_id));
  const rows = given.map(({ is_barred: _, ...address }) => address);
  const added = await insertHashed(tx, vault, rows, sql`do nothing`);
  recordAdded(tx, added, by);
  const marked = added.filter(({ prospect_id }) => barred.has(prospect_id));
  if (marked.length > 0) await markBarred(tx, vault, marked, by);
  for (const { prospect_id, source, verification } of added) {
    if (barred.has(prospect_id)) continue;
    tx.emit(event('email.revealed', tx.organization_id, { prospect_id, source, verification, addresses: 1 }));
  }
}
