/** Deletes personal data whose retention period is over, imports, and what searches found. */
import sql, { type Sql } from 'sql-template-tag';
import type { Vault } from '../core/encryption/vault.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { default_retention, type Retention, type Services } from '../core/resource/services.ts';
import { nobody } from './brands/acting.ts';
import { refreshBars } from './contact/refresh_bars.ts';
import { eraseProspects } from './erase.ts';
import { lockSuppressions } from './prospects/barred_site.ts';
import { keyedHash } from './prospects/keyed_hash.ts';
import type { Prospect } from './prospects/prospect.ts';
import { endedImport, expired, fetchedBefore, firstKept, unused_address_days } from './retention.ts';

/** Erases what an organization keeps for too long, at most so many of each kind. @returns how many of the kind that had most */
export async function purge(
  tx: Tx,
  { vault, retention = default_retention }: Pick<Services, 'vault' | 'retention'>,
  at: string,
  most: number,
): Promise<number> {
  await lockSuppressions(tx);
  const prospects = await tx.all<Pick<Prospect, 'id' | 'brand_id' | 'channel' | 'key'>>(sql`
    select t.id, t.brand_id, t.channel, t.key
    from recruitment.brand b
    join recruitment.prospect t on t.organization_id = b.organization_id and t.brand_id = b.id
    where ${tenant(tx)} and (b.deleted_at is not null or ${expired(at)})
    order by t.id
    limit ${most}
    for update of t`);
  await eraseProspects(tx, vault, prospects, null);
  return Math.max(
    prospects.length,
    await purgeAddresses(tx, vault, at, most),
    await purgeImports(tx, retention, at, most),
    await purgeFound(tx, retention, at, most),
  );
}

/** Deletes imports that ended, behind the rows that they refused. */
async function purgeImports(tx: Tx, { import_days }: Retention, at: string, most: number): Promise<number> {
  const { count } = await tx.one<{ count: number }>(sql`
    with ended as materialized (
      select t.id from recruitment.import t where ${tenant(tx)} and ${endedImport(import_days, at)} order by t.id limit ${most}
    ),
    refused as materialized (
      select e.id from recruitment.import_error e
      where e.organization_id = ${tx.organization_id} and e.import_id in (select d.id from ended d)
      limit ${most}
    ),
    emptied as (
      delete from recruitment.import_error e using refused r where e.organization_id = ${tx.organization_id} and e.id = r.id
    )
    select count(*)::integer as count from refused`);
  if (count === most) return count;
  const deleted = await tx.all(sql`
    delete from recruitment.import t
    where ${tenant(tx)} and t.id in (
      select t.id from recruitment.import t where ${tenant(tx)} and ${endedImport(import_days, at)} order by t.id limit ${most}
    ) and not exists (
      select from recruitment.import_error e where e.organization_id = t.organization_id and e.import_id = t.id
    )
    returning t.id`);
  return Math.max(count, deleted.length);
}

/**
 * Deletes the results of searches that ended, the visits of scans, and the pages that were fetched: a later scan fetches them again. What they cost
 * stays, with the pages of providers that cost it, and so do the prospects that they found.
 */
async function purgeFound(tx: Tx, { search_days }: Retention, at: string, most: number): Promise<number> {
  const ofEnded = sql`exists (
    select from recruitment.run r where r.organization_id = t.organization_id and r.id = t.run_id and r.finished_at is not null
  )`;
  const results = await tx.all(sql`
    delete from recruitment.run_result t
    where ${tenant(tx)} and t.id in (
      select t.id from recruitment.run_result t
      where ${tenant(tx)} and t.id < ${firstKept('fsr', search_days, at)} and ${ofEnded}
      order by t.id
      limit ${most}
    )
    returning t.id`);
  const deleteNumbered = (table: Sql, which: Sql) =>
    tx.all(sql`
      delete from ${table} t
      where ${tenant(tx)} and (t.run_id, t.number) in (
        select t.run_id, t.number from ${table} t
        where ${tenant(tx)} and t.run_id < ${firstKept('fsc', search_days, at)} and ${which}
        order by t.run_id, t.number
        limit ${most}
      )
      returning t.number`);
  const visits = await deleteNumbered(sql`recruitment.visit`, ofEnded);
  const asked = await deleteNumbered(sql`recruitment.run_page`, sql`t.price_micros = 0 and ${ofEnded}`);
  const pages = await tx.all(sql`
    delete from recruitment.page t
    where ${tenant(tx)} and t.url in (
      select t.url from recruitment.page t where ${tenant(tx)} and ${fetchedBefore(search_days, at)} order by t.fetched_at limit ${most}
    ) and ${fetchedBefore(search_days, at)}
    returning t.url`);
  return Math.max(results.length, visits.length, asked.length, pages.length);
}

async function purgeAddresses(tx: Tx, vault: Vault, at: string, most: number): Promise<number> {
  const purged = await tx.all<{ prospect_id: string }>(sql`
    with expired as (
      select t.id from recruitment.email_address t
      where ${tenant(tx)} and t.used_at is null and t.source <> 'manual'
        and t.found_at < least(${at}::timestamptz, now()) - make_interval(days => ${unused_address_days})
      order by t.id
      limit ${most}
    )
    delete from recruitment.email_address t using expired e
    where ${tenant(tx)} and t.id = e.id
    returning t.prospect_id`);
  const holders = [...new Set(purged.map(({ prospect_id }) => prospect_id))];
  await refreshBars(tx, await keyedHash(tx, vault), holders, nobody);
  return purged.length;
}
