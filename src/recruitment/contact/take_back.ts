/** Suppressions that a message was classified to ask for, and that a person takes back. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Actor } from '../brands/acting.ts';
import { lockSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { addressesOfMessages } from './addresses_of_messages.ts';
import { prospectsHit, refreshBars, refreshOthers, storedBar } from './refresh_bars.ts';
import { openedEntry, type Suppression, suppressions } from './suppression.ts';

/**
 * Lifts what the text of a message barred, or gives it back the reason that it has besides. What a link, a mailto, a report or a person barred as well
 * stays, and so does what another message of the prospect asks for: the entry is classified by that one then. Whoever is not unsubscribed by anything else is subscribed again; nothing is resumed. To be called before rows are locked.
 * @param others prospects whom it concerned besides those that hold the address
 */
export async function takeBack(tx: Tx, vault: Vault, message_id: string, others: string[], by: Actor): Promise<void> {
  await lockSuppressions(tx);
  await handOn(tx, message_id);
  const entries = await tx.all<{ id: string; reason_before: Suppression['reason'] | null }>(sql`
    select t.id, t.reason_before from recruitment.suppression t
    where ${tenant(tx)} and t.source_message_id = ${message_id} and t.lifted_at is null
    order by t.id`);
  const ids = new Set(others);
  for (const { id, reason_before } of entries) {
    const entry = await suppressions.get(tx, id, { lock: true });
    const lifted = { lifted_at: tx.now, lift_reason: 'mistake', lifted_by_user_id: by.user_id };
    const restored = { reason: reason_before, source_message_id: null, reason_before: null };
    await suppressions.update(tx, id, reason_before === null ? lifted : restored);
    const part = await prospectsHit(tx, await storedBar(tx, openedEntry(vault, entry)));
    for (const prospect_id of part) ids.add(prospect_id);
    await refreshOthers(tx, entry, { part, noted: 'taken_back', by });
  }
  if (entries.length === 0) return;
  await subscribeAgain(tx, [...ids]);
  await refreshBars(tx, await keyedHash(tx, vault), [...ids], by, 'mistake');
}

/**
 * An unsubscribe that another message of the prospect asks for as well is classified by that one.
 * The order is by `received_at` because the index `message_by_purpose` has it: which of several is taken makes no difference.
 */
const handOn = (tx: Tx, message_id: string): Promise<object[]> =>
  tx.all(sql`
    update recruitment.suppression t
    set source_message_id = other.id
    from recruitment.message m
    cross join lateral (
      select o.id
      from recruitment.message o
      where o.organization_id = m.organization_id and o.prospect_id = m.prospect_id and o.id <> m.id
        and o.direction = 'inbound' and o.purpose = 'unsubscribe' and o.confidence is not null
      order by o.received_at, o.id
      limit 1
    ) as other
    where m.organization_id = ${tx.organization_id} and m.id = ${message_id}
      and ${tenant(tx)} and t.source_message_id = ${message_id}
      and t.reason = 'unsubscribed' and t.lifted_at is null`);

/** Subscribes prospects again whom no entry unsubscribes any more, on an address that they hold or were written to. */
export const subscribeAgain = (tx: Tx, prospect_ids: string[]): Promise<object[]> =>
  tx.all(sql`
    update recruitment.prospect t set unsubscribed_at = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${prospect_ids}) and t.unsubscribed_at is not null
      and not exists (select from recruitment.suppression s where ${unsubscribes} and s.prospect_id = t.id)
      and not exists (
        select from recruitment.suppression s
        where ${unsubscribes} and s.hmac = any(
          array(
            select unnest(array[a.address_hmac, a.domain_hmac]) from recruitment.email_address a
            where a.organization_id = t.organization_id and a.prospect_id = t.id
          ) || array(${addressesOfMessages(tx, sql`t.id`)})
        )
        offset 0
      )`);

const unsubscribes = sql`
  s.organization_id = t.organization_id and s.lifted_at is null and s.reason in ('unsubscribed', 'complaint')`;
