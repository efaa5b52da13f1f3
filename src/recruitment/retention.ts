/** Deletes personal data whose retention period is over. */
import sql from 'sql-template-tag';
import type { Vault } from '../core/encryption/vault.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { nobody } from './brands/acting.ts';
import { refreshBars } from './contact/refresh_bars.ts';
import { eraseProspects } from './erase.ts';
import { lockSuppressions } from './prospects/barred_site.ts';
import { keyedHash } from './prospects/keyed_hash.ts';
import type { Prospect } from './prospects/prospect.ts';

/** "Revealed addresses that were not used go after 30 days (GDPR, article 14)." */
const unused_address_days = 30;

/** The limit of the API: a larger one would lead to before the beginning of time. */
const most_retention_days = 3650;

/** The organizations that keep something for too long. @param at as of when, ISO 8601: not later than now by Postgres' clock */
export const organizationsToPurge = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all<{ organization_id: string }>(sql`
    select b.organization_id
    from recruitment.brand b
    where exists (
      select from recruitment.prospect t
      where t.organization_id = b.organization_id and t.brand_id = b.id and (b.deleted_at is not null or ${expired(at)})
    )
    union
    select a.organization_id
    from recruitment.email_address a
    where a.used_at is null and a.source <> 'manual' and a.found_at < least(${at}::timestamptz, now()) - make_interval(days => ${unused_address_days})`);

/** Never written to, not invited and not in talks, for longer than the brand keeps such prospects. */
const expired = (at: string) => sql`(
  t.stage = 'found' and t.sent = 0
  -- An email whose outcome is not known may have been sent.
  and not exists (
    select from recruitment.message m
    where m.organization_id = t.organization_id and m.prospect_id = t.id and m.direction = 'outbound' and m.state in ('sending', 'unknown')
  )
  and t.invited_at is null and t.signed_up_at is null and t.partner_id is null and t.deal_id is null
  and t.created_at < least(${at}::timestamptz, now()) - make_interval(days => least(b.retention_days, ${most_retention_days})))`;

/** Erases what an organization keeps for too long, at most so many of each kind. @returns how many of the kind that had most */
export async function purge(tx: Tx, vault: Vault, at: string, most: number): Promise<number> {
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
  return Math.max(prospects.length, await purgeAddresses(tx, vault, at, most));
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
