/** Adds an address to each of many prospects, in a few statements whatever their number. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Actor } from '../brands/acting.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { prospects } from '../prospects/prospect.ts';
import { hashesOf } from './address.ts';
import { openByHand } from './by_hand.ts';
import { emitRevealed, insertAddresses, markBarred, prospectsOf, recordAdded } from './insert_address.ts';

export interface GivenAddress {
  prospect_id: string;
  email: string;
}

/**
 * Adds addresses that a person or the API names. Prospects that have theirs already stay as they are. Tells `email.revealed` for the others,
 * and marks those whose address is barred. To be called before rows are locked.
 * @returns the prospects whose address is new
 */
export async function addToEach(tx: Tx, vault: Vault, given: GivenAddress[], by: Actor): Promise<Set<string>> {
  if (given.length === 0) return new Set();
  await holdSuppressions(tx);
  const ids = [...new Set(given.map(({ prospect_id }) => prospect_id))];
  const byHand = await openByHand();
  const holders = new Map((await prospects.lockMany(tx, ids)).map((prospect) => [prospect.id, prospect]));
  const addresses = given.flatMap(({ prospect_id, email }) => {
    const holder = holders.get(prospect_id);
    return holder ? [byHand(email, holder)] : [];
  });
  const added = await insertAddresses(tx, vault, addresses, sql`do nothing`);
  if (added.length === 0) return new Set();
  recordAdded(tx, added, by);
  await markBarred(tx, vault, added, by);
  await emitRevealed(tx, added);
  return new Set(prospectsOf(added));
}

/** The addresses of prospects, and whether each has it already. */
export async function knownOf(tx: Tx, vault: Vault, given: GivenAddress[]): Promise<boolean[]> {
  const hash = await keyedHash(tx, vault);
  const stored = await tx.all<{ prospect_id: string; hmac: string }>(sql`
    select a.prospect_id, encode(a.address_hmac, 'hex') as hmac
    from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = any(${given.map(({ prospect_id }) => prospect_id)})`);
  const known = new Set(stored.map(({ prospect_id, hmac }) => `${prospect_id} ${hmac}`));
  return given.map(({ prospect_id, email }) =>
    known.has(`${prospect_id} ${hashesOf(hash, email).address_hmac.toString('hex')}`),
  );
}
