/** Stores addresses of prospects, emits their events and marks barred ones, in a fixed number of statements. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { event } from '../events/event.ts';
import { recordActivity } from '../prospects/activity.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type AddressHashes, hashesOf } from './address.ts';
import type { AddressSource, EmailAddress, Verification } from './email_address.ts';
import { usable } from './email_status.ts';
import { noteReason } from './mark.ts';
import { refreshBars } from './refresh_bars.ts';
import type { Suppression } from './suppression.ts';

export interface NewAddress {
  prospect_id: string;
  email: string;
  source: AddressSource;
  verification: Verification;
  source_url: string | null;
  /** The best first. */
  rank: number;
}
/** An address, and what it is found and barred by. */
export type HashedAddress = NewAddress & AddressHashes;
export type Added = HashedAddress & { id: string };
/** An address with its id, under which it is sealed: hexadecimal, as the hashes go too. */
export type SealedAddress = Added & { address: string };

/** @param if_known what becomes of an address that its prospect has: `do nothing`, or an update of `t` @returns those that are new */
export async function insertAddresses(tx: Tx, vault: Vault, addresses: NewAddress[], if_known: Sql): Promise<Added[]> {
  const hash = await keyedHash(tx, vault);
  return insertHashed(
    tx,
    vault,
    addresses.map((one) => ({ ...one, ...hashesOf(hash, one.email) })),
    if_known,
  );
}

/** Inserts as `insertAddresses` does, for addresses whose hashes are known. */
export async function insertHashed(tx: Tx, vault: Vault, addresses: HashedAddress[], if_known: Sql): Promise<Added[]> {
  const rows = onceEach(addresses.map((one) => ({ ...one, id: newId('fea') })));
  const sealed = rows.map((row) => ({ ...row, address: seal(vault, row) }));
  const written = await tx.all<{ id: string }>(insertion(tx, sealed, if_known));
  const ids = new Set(written.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id));
}

/** Encrypts an address for `SealedAddress`. */
export const seal = (vault: Vault, { id, email }: Pick<Added, 'id' | 'email'>): string =>
  vault.encrypt(email, id).toString('hex');

/** Inserts addresses that are not known yet, of prospects that the transaction has created: one of each. */
export const insertOfNew = (tx: Tx, addresses: SealedAddress[]): void =>
  tx.send(insertion(tx, addresses, sql`do nothing`));

function insertion(tx: Tx, addresses: SealedAddress[], if_known: Sql): Sql {
  const values = addresses.map(({ email: _, address_hmac, domain_hmac, ...row }) => ({
    ...row,
    ...{ address_hmac: address_hmac.toString('hex'), domain_hmac: domain_hmac.toString('hex') },
  }));
  return sql`
    insert into recruitment.email_address as t
      (organization_id, id, prospect_id, address, address_hmac, domain_hmac, rank, source, source_url, verification, found_at, created_at)
    select ${tx.organization_id}, r.id, r.prospect_id, decode(r.address, 'hex'), decode(r.address_hmac, 'hex'), decode(r.domain_hmac, 'hex'),
      r.rank, r.source, r.source_url, r.verification, ${tx.now}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(values)}::json) as r (
      id text, prospect_id text, address text, address_hmac text, domain_hmac text, rank integer, source text, source_url text, verification text
    )
    on conflict (organization_id, prospect_id, address_hmac) ${if_known}
    returning t.id`;
}

/** The first of each address of a prospect, with the last verification that says more than `unknown`. */
function onceEach(rows: Added[]): Added[] {
  const first = new Map<string, Added>();
  for (const row of rows) {
    const key = `${row.prospect_id} ${row.address_hmac.toString('hex')}`;
    const known = first.get(key);
    if (!known) first.set(key, row);
    else if (row.verification !== 'unknown') first.set(key, { ...known, verification: row.verification });
  }
  return [...first.values()];
}

/** Records one address for each of their prospects. */
export const recordAdded = (tx: Tx, added: Added[], by: Actor): void =>
  recordActivity(
    tx,
    'email_added',
    by,
    added.map(({ prospect_id, source }) => ({ prospect_id, data: { source, addresses: 1 } })),
  );

/** Emits that addresses are known, with source and verification of the best one of each prospect, where a new one is usable. */
export async function emitRevealed(tx: Tx, added: Added[]): Promise<void> {
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
    where a.organization_id = ${tx.organization_id} and a.prospect_id = any(${prospectsOf(added)}) and ${usable}
    order by a.prospect_id, a.rank, a.id`);
  for (const { prospect_id, source, verification, addresses, is_new } of best) {
    if (!is_new) continue;
    tx.emit(event('email.revealed', tx.organization_id, { prospect_id, source, verification, addresses }));
  }
}

/** Marks the prospects whose new addresses are barred. */
export async function markBarred(tx: Tx, vault: Vault, added: Added[], by: Actor): Promise<void> {
  const entries = await tx.all<Pick<Suppression, 'id' | 'reason'> & { hmac: Buffer }>(sql`
    select t.id, t.reason, t.hmac from recruitment.suppression t
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(${added.map(({ address_hmac }) => address_hmac)}::bytea[])
    order by t.created_at, t.id`);
  for (const { id, reason, hmac } of entries) {
    const holders = added.filter((one) => hmac.equals(one.address_hmac)).map(({ prospect_id }) => prospect_id);
    await noteReason(tx, holders, id, reason, by);
  }
  await refreshBars(tx, await keyedHash(tx, vault), prospectsOf(added), by);
}

export const prospectsOf = (added: Added[]): string[] => [...new Set(added.map(({ prospect_id }) => prospect_id))];
