/** What is stored about a prospect as a person, erased: a hash of the key and of each address is what is left. */
import sql from 'sql-template-tag';
import type { Vault } from '../core/encryption/vault.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { newId, timeOfId } from '../core/values/id.ts';
import { erasePersonalData, eventsMentioning } from '../webhooks/events/personal_data.ts';
import type { Reason } from './contact/suppression.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { tombstoneValue } from './prospects/create.ts';
import { keyedHash } from './prospects/keyed_hash.ts';
import type { Prospect } from './prospects/prospect.ts';

type Erased = Pick<Prospect, 'id' | 'brand_id' | 'channel' | 'key'>;

/**
 * Erases prospects: addresses, notes, activity, evidence and their places in lists go with them, and their key is removed from stored events.
 * A hash of brand, channel and key stays, so that no search or scan makes them again, and the hashes of addresses that are barred.
 * The caller holds suppressions (contact/suppression.ts).
 * @param bars why their addresses are barred from now on; null: those that are not barred stay so
 */
export async function eraseProspects(tx: Tx, vault: Vault, rows: Erased[], bars: Reason | null): Promise<void> {
  if (rows.length === 0) return;
  const ids = rows.map(({ id }) => id);
  const hash = await keyedHash(tx, vault);
  await tx.all(sql`
    insert into recruitment.tombstone (organization_id, hmac, erased_at)
    select ${tx.organization_id}, given.hmac, ${tx.now}::timestamptz
    from unnest(${rows.map((row) => hash(tombstoneValue(row)))}::bytea[]) as given (hmac)
    on conflict do nothing`);
  await barAddresses(tx, ids, bars);
  await forgetValues(tx, ids);
  await erasePages(tx, ids);
  await eraseFromEvents(tx, ids);
  await tx.all(sql`
    with erased as (
      delete from recruitment.prospect t where ${tenant(tx)} and t.id = any(${ids})
      returning t.organization_id, t.id, t.brand_id
    )
    insert into core.deleted_object (organization_id, id, parent_id, object, deleted_at)
    select e.organization_id, e.id, e.brand_id, 'prospect', ${tx.now}::timestamptz from erased e
    on conflict do nothing`);
}

/** Bars their addresses: for the reason that is given, or for that of the mark on the prospect, which goes with it. */
async function barAddresses(tx: Tx, ids: string[], bars: Reason | null): Promise<void> {
  const addresses = await tx.all<{ hmac: Buffer; reason: Reason | null; by_user_id: string | null }>(sql`
    select distinct on (a.address_hmac) a.address_hmac as hmac, t.reason, t.by_user_id
    from recruitment.email_address a
    left join recruitment.suppression t
      on t.organization_id = a.organization_id and t.prospect_id = a.prospect_id and t.lifted_at is null
    where a.organization_id = ${tx.organization_id} and a.prospect_id = any(${ids})
    order by a.address_hmac, t.reason`);
  const barred = addresses.flatMap(({ hmac, reason, by_user_id }) => {
    const why = reason ?? bars;
    return why === null ? [] : [{ id: newId('fdn'), hmac: hmac.toString('hex'), reason: why, by_user_id }];
  });
  await tx.all(sql`
    insert into recruitment.suppression (organization_id, id, kind, hmac, reason, by_user_id, created_at)
    select ${tx.organization_id}, given.id, 'address', decode(given.hmac, 'hex'), given.reason, given.by_user_id, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(barred)}::json) as given (id text, hmac text, reason text, by_user_id text)
    on conflict do nothing`);
}

/** Of barred addresses that nobody else holds, the hash is what is left. */
const forgetValues = (tx: Tx, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t set value = null
    where ${tenant(tx)} and t.kind = 'address' and t.value is not null
      and t.hmac in (
        select a.address_hmac from recruitment.email_address a
        where a.organization_id = t.organization_id and a.prospect_id = any(${ids})
      )
      and not exists (
        select from recruitment.email_address other
        where other.organization_id = t.organization_id and other.address_hmac = t.hmac and not other.prospect_id = any(${ids})
      )`);

/** What was fetched of them, which searches of the index would find. */
const erasePages = (tx: Tx, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    delete from recruitment.page t
    using recruitment.prospect p
    where ${tenant(tx)} and p.organization_id = t.organization_id and p.id = any(${ids}) and t.channel = p.channel and t.key = p.key`);

/** Events name prospects by ids; the type below holds the key besides. */
async function eraseFromEvents(tx: Tx, ids: string[]): Promise<void> {
  const log = { catalogue, ...prefixes };
  const mention = { subject_id: tx.organization_id, types: ['affiliate.saved'], ids };
  const events = await eventsMentioning(tx, log, { ...mention, since_ms: Math.min(...ids.map(timeOfId)) });
  await erasePersonalData(tx, log, tx.organization_id, events);
}
