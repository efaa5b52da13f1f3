/** Prospects that are barred from the start: a site whose domain must not be written to. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type KeyedHash, keyedHash } from './keyed_hash.ts';
import type { Prospect } from './prospect.ts';

/** Channels whose key is a domain. */
export const site_channels = ['website', 'podcast', 'newsletter', 'other'];

/** @param domain as it is compared: a registrable domain, or a key */
export const domainHash = (hash: KeyedHash, domain: string): Buffer => hash(`domain ${domain}`);

/** Returns the hash by which an entry bars a prospect's domain. Null: an account of a platform has no domain. */
export const siteHash = (hash: KeyedHash, { channel, key }: Pick<Prospect, 'channel' | 'key'>): Buffer | null =>
  site_channels.includes(channel) ? domainHash(hash, key) : null;

export interface SiteBar {
  id: string;
  reason: NonNullable<Prospect['do_not_contact']>['reason'];
}

/** Returns the entries that bar the domains of sites, in the order of the rows. Nobody marks or lifts until the transaction ends. */
export async function barsOfSites(
  tx: Tx,
  vault: Vault,
  rows: Pick<Prospect, 'channel' | 'key'>[],
): Promise<(SiteBar | undefined)[]> {
  const [hash] = await Promise.all([keyedHash(tx, vault), holdSuppressions(tx)]);
  const hashes = rows.map((row) => siteHash(hash, row));
  const entries = await tx.all<SiteBar & { hmac: Buffer }>(sql`
    select t.id, t.reason, t.hmac from recruitment.suppression t
    where t.organization_id = ${tx.organization_id} and t.lifted_at is null and t.kind = 'domain' and t.hmac = any(${hashes}::bytea[])`);
  const by_hash = new Map(entries.map((entry) => [entry.hmac.toString('hex'), entry]));
  return hashes.map((each) => (each ? by_hash.get(each.toString('hex')) : undefined));
}

const lockNumber = (tx: Tx): Sql => sql`hashtextextended(${`suppression ${tx.organization_id}`}, 0)`;

/** Until the transaction ends, nobody is marked or lifted in the organization. To be called before rows of prospects are locked. */
export const holdSuppressions = (tx: Tx): Promise<object[]> =>
  tx.all(sql`select pg_advisory_xact_lock_shared(${lockNumber(tx)})`);

/** Until the transaction ends, nobody else marks or lifts in the organization, adds a prospect or an address, or begins to send. */
export const lockSuppressions = (tx: Tx): Promise<object[]> =>
  tx.all(sql`select pg_advisory_xact_lock(${lockNumber(tx)})`);
