/** Adds an address to each of many prospects, in a few statements whatever their number. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import { recordActivity } from '../prospects/activity.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { prospects } from '../prospects/prospect.ts';
import { type AddressHashes, hashesOf } from './address.ts';
import type { EmailAddress } from './email_address.ts';
import { usable } from './email_status.ts';
import { verificationOf } from './mail_host.ts';
import { noteReason, refreshBars } from './mark.ts';
import type { Suppression } from './suppression.ts';

export interface GivenAddress {
  prospect_id: string;
  email: string;
}
type Added = GivenAddress & AddressHashes & { id: string };

/**
 * Adds addresses that a person or the API names. Prospects that have theirs already stay as they are. Tells `email.revealed` for the others,
 * and marks those whose address is barred. To be called before rows are locked.
 * @returns the prospects whose address is new
 */
export async function addToEach(tx: Tx, vault: Vault, given: GivenAddress[], by: Actor): Promise<Set<string>> {
  if (given.length === 0) return new Set();
  await holdSuppressions(tx);
  const ids = [...new Set(given.map(({ prospect_id }) => prospect_id))];
  const locked = await prospects.lockMany(tx, ids);
  const known = new Set(locked.map(({ id }) => id));
  const added = await insertEach(
    tx,
    vault,
    given.filter(({ prospect_id }) => known.has(prospect_id)),
  );
  const changed = [...new Set(added.map(({ prospect_id }) => prospect_id))];
  if (changed.length === 0) return new Set();
  const data = { source: 'manual', addresses: 1 };
  recordActivity(
    tx,
    'email_added',
    by,
    added.map(({ prospect_id }) => ({ prospect_id, data })),
  );
  await markEach(tx, vault, added, by);
  await tellEach(tx, changed, added);
  return new Set(changed);
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

async function insertEach(tx: Tx, vault: Vault, given: GivenAddress[]): Promise<Added[]> {
  const hash = await keyedHash(tx, vault);
  const rows = given.map((one) => ({ ...one, id: newId('fea'), ...hashesOf(hash, one.email) }));
  const values = rows.map(async ({ id, prospect_id, email, address_hmac, domain_hmac }) => ({
    ...{ id, prospect_id, verification: await verificationOf(email) },
    ...{ address: vault.encrypt(email, id).toString('hex') },
    ...{ address_hmac: address_hmac.toString('hex'), domain_hmac: domain_hmac.toString('hex') },
  }));
  const inserted = await tx.all<{ id: string }>(sql`
    insert into recruitment.email_address as t
      (organization_id, id, prospect_id, address, address_hmac, domain_hmac, rank, source, verification, found_at, created_at)
    select ${tx.organization_id}, r.id, r.prospect_id, decode(r.address, 'hex'), decode(r.address_hmac, 'hex'), decode(r.domain_hmac, 'hex'),
      0, 'manual', r.verification, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(await Promise.all(values))}::json) as r (
      id text, prospect_id text, address text, address_hmac text, domain_hmac text, verification text
    )
    on conflict (organization_id, prospect_id, address_hmac) do nothing
    returning t.id`);
  const ids = new Set(inserted.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id));
}

/** Tells that addresses are known, with source and verification of the best one of each prospect, where a new one is usable. */
async function tellEach(tx: Tx, prospect_ids: string[], added: Added[]): Promise<void> {
  type Best = Pick<EmailAddress, 'source' | 'verification'> & {
    prospect_id: string;
    addresses: number;
    is_new: boolean;
  };
  const best = await tx.all<Best>(sql`
    select distinct on (a.prospect_id) a.prospect_id, a.source, a.verification,
      count(*) over (partition by a.prospect_id) as addresses,
      bool_or(a.id = any(${added.map(({ id }) => id)})) over (partition by a.prospect_id) as is_new
    from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = any(${prospect_ids}) and ${usable}
    order by a.prospect_id, a.rank, a.id`);
  for (const { prospect_id, source, verification, addresses, is_new } of best) {
    if (!is_new) continue;
    tx.emit(event('email.revealed', tx.organization_id, { prospect_id, source, verification, addresses }));
  }
}

/** What bars an address bars its prospect too. */
async function markEach(tx: Tx, vault: Vault, added: Added[], by: Actor): Promise<void> {
  const entries = await tx.all<Pick<Suppression, 'id' | 'reason'> & { hmac: Buffer }>(sql`
    select t.id, t.reason, t.hmac from recruitment.suppression t
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(${added.map(({ address_hmac }) => address_hmac)}::bytea[])
    order by t.created_at, t.id`);
  for (const { id, reason, hmac } of entries) {
    const holders = added.filter((one) => hmac.equals(one.address_hmac)).map(({ prospect_id }) => prospect_id);
    await noteReason(tx, holders, id, reason, by);
  }
  const ids = [...new Set(added.map(({ prospect_id }) => prospect_id))];
  await refreshBars(tx, await keyedHash(tx, vault), ids, by);
}
