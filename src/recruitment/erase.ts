/** Erases the personal data of a prospect: a hash of the key and of each address is what is left. */
import sql from 'sql-template-tag';
import type { Vault } from '../core/encryption/vault.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { timeOfId } from '../core/values/id.ts';
import { erasePersonalData, eventsMentioning, nextPart } from '../webhooks/events/personal_data.ts';
import { type Actor, nobody } from './brands/acting.ts';
import { barAddressesOf } from './contact/bar_addresses.ts';
import type { Reason } from './contact/suppression.ts';
import { forgetInSearches } from './discovery/forget.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { tombstoneValue } from './prospects/create.ts';
import { keyedHash } from './prospects/keyed_hash.ts';
import type { Prospect } from './prospects/prospect.ts';
import { stopSequences } from './sequences/stop.ts';

type Erased = Pick<Prospect, 'id' | 'brand_id' | 'channel' | 'key'>;

/**
 * Erases prospects: addresses, notes, activity, evidence and their places in lists go with them, and their key is removed from stored events.
 * A hash of brand, channel and key stays, so that no search or scan makes them again, and the hashes of addresses that are barred.
 * Whoever else holds an address is marked. The caller has locked suppressions (prospects/barred_site.ts).
 * @param bars why their addresses are barred from now on; null: those that are not barred stay so
 */
export async function eraseProspects(
  tx: Tx,
  vault: Vault,
  rows: Erased[],
  bars: Reason | null,
  by: Actor = nobody,
): Promise<void> {
  if (rows.length === 0) return;
  const ids = rows.map(({ id }) => id);
  const hash = await keyedHash(tx, vault);
  await tx.all(sql`
    insert into recruitment.tombstone (organization_id, hmac, erased_at)
    select ${tx.organization_id}, given.hmac, ${tx.now}::timestamptz
    from unnest(${rows.map((row) => hash(tombstoneValue(row)))}::bytea[]) as given (hmac)
    on conflict do nothing`);
  await barAddressesOf(tx, vault, ids, bars, by);
  await forgetValues(tx, ids);
  await erasePages(tx, ids);
  await forgetInSearches(tx, rows);
  await eraseMails(tx, ids);
  await eraseFromEvents(tx, { ids, after: '0' });
  await tx.all(sql`
    with erased as (
      delete from recruitment.prospect t where ${tenant(tx)} and t.id = any(${ids})
      returning t.organization_id, t.id, t.brand_id
    )
    insert into core.deleted_object (organization_id, id, parent_id, object, deleted_at)
    select e.organization_id, e.id, e.brand_id, 'prospect', ${tx.now}::timestamptz from erased e
    on conflict do nothing`);
}

/** Clears the value of barred addresses that nobody else holds. Their hash stays. */
const forgetValues = (tx: Tx, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t set value = null
    where ${tenant(tx)} and t.kind = 'address' and t.value is not null
      and t.hmac = any(array(
        select a.address_hmac from recruitment.email_address a
        where a.organization_id = ${tx.organization_id} and a.prospect_id = any(${ids})
      ))
      and not exists (
        select from recruitment.email_address other
        where other.organization_id = t.organization_id and other.address_hmac = t.hmac and not other.prospect_id = any(${ids})
      )`);

/**
 * Sequences, threads and messages stay for the counts, without texts, addresses and what others called their mails. The hash of the address stays:
 * who unsubscribes later is barred by it. What waits to be sent is not sent.
 */
async function eraseMails(tx: Tx, ids: string[]): Promise<void> {
  await stopSequences(tx, ids);
  await tx.all(sql`
    update recruitment.message t
    set
      state = case t.state when 'planned' then 'cancelled' else t.state end,
      subject = null, body_text = null, body_html = null, named = null, language_code = null, server_answer = null, email_address_id = null,
      recipient = null, due_at = null, content_hash = null, other_message_ids = '{}',
      in_reply_to = null, reference_ids = '{}', needs_review = false,
      rfc_message_id = case t.direction when 'inbound' then 'erased.' || t.id else t.rfc_message_id end,
      updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.prospect_id = any(${ids})`);
  await tx.all(sql`
    update recruitment.thread t set subject = null, needs_review = false, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.prospect_id = any(${ids})`);
}

/** Deletes the fetched pages, which searches of the index would find. */
const erasePages = (tx: Tx, ids: string[]): Promise<object[]> =>
  tx.all(sql`
    delete from recruitment.page t
    using recruitment.prospect p
    where ${tenant(tx)} and p.organization_id = t.organization_id and p.id = any(${ids}) and t.channel = p.channel and t.key = p.key`);

/** Events name prospects by ids; the type below holds the key besides. Erases from a part of the log, and has a job do the same behind it. */
export async function eraseFromEvents(tx: Tx, { ids, after }: { ids: string[]; after: string }): Promise<void> {
  const log = { catalogue, ...prefixes };
  const { organization_id, request_id } = tx;
  const about = { subject_id: organization_id, since_ms: Math.min(...ids.map(timeOfId)) };
  const part = await nextPart(tx, log, about, after);
  const events = await eventsMentioning(tx, log, { ...about, types: ['affiliate.saved'], ids }, part);
  await erasePersonalData(tx, log, organization_id, events);
  if (part.is_last) return;
  const payload = { organization_id, request_id, ids, after: part.until };
  tx.enqueue('recruitment/erase_prospects', payload, { job_key: `erase_prospects:${ids[0]}` });
}
