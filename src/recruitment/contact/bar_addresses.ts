import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import type { Actor } from '../brands/acting.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { refreshBars, refreshOthers } from './refresh_bars.ts';
import { type Reason, suppressions, weakest_first } from './suppression.ts';

interface Barred {
  id: string;
  /** In hexadecimal. */
  hmac: string;
  reason: Reason;
  /** True if the prospect was marked. Otherwise the reason is the caller's. */
  is_marked: boolean;
}

/**
 * Bars the addresses of prospects that go: for the reason of their mark, which goes with them, or for the one that is given, whichever is
 * stronger. Whoever else holds them is marked. To be called with suppressions locked.
 * @param bars null: the addresses of those that are not marked stay as they are
 */
export async function barAddressesOf(
  tx: Tx,
  vault: Vault,
  prospect_ids: string[],
  bars: Reason | null,
  by: Actor,
): Promise<void> {
  const barred = await addressesToBar(tx, prospect_ids, bars);
  if (barred.length === 0) return;
  // Decoded first: behind row-level security no index is used for what decode() gives.
  const given = sql`(
    select g.id, decode(g.hmac, 'hex') as hmac, g.reason, g.is_marked
    from json_to_recordset(${JSON.stringify(barred)}::json) as g (id text, hmac text, reason text, is_marked boolean)
    offset 0
  ) as given`;
  await tx.all(sql`
    update recruitment.suppression t set reason = given.reason, updated_at = ${tx.now}::timestamptz
    from ${given}
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = given.hmac and given.is_marked
      and array_position(${weakest_first}::text[], t.reason) < array_position(${weakest_first}::text[], given.reason)`);
  await tx.all(sql`
    insert into recruitment.suppression (organization_id, id, kind, hmac, reason, by_user_id, created_at)
    select ${tx.organization_id}, given.id, 'address', given.hmac, given.reason, ${by.user_id}, ${tx.now}::timestamptz
    from ${given}
    on conflict do nothing`);
  const entries = await tx.all<{ id: string; holders: string[] }>(sql`
    select t.id, array(
      select a.prospect_id from recruitment.email_address a
      where a.organization_id = t.organization_id and a.address_hmac = t.hmac and not a.prospect_id = any(${prospect_ids})
      order by a.prospect_id
      limit ${most_at_once}
    ) as holders
    from ${given}
    join ${suppressions.from} on ${tenant(tx)} and t.lifted_at is null and t.hmac = given.hmac`);
  const others = [...new Set(entries.flatMap(({ holders }) => holders))];
  await refreshBars(tx, await keyedHash(tx, vault), others, by);
  for (const entry of entries) await refreshOthers(tx, entry, { part: entry.holders, noted: null, by });
}

async function addressesToBar(tx: Tx, prospect_ids: string[], bars: Reason | null): Promise<Barred[]> {
  const strength = sql`array_position(${weakest_first}::text[], p.do_not_contact_reason)`;
  const addresses = await tx.all<{ hmac: Buffer; reason: Reason | null }>(sql`
    select distinct on (a.address_hmac) a.address_hmac as hmac, p.do_not_contact_reason as reason
    from recruitment.prospect p
    join recruitment.email_address a on a.organization_id = p.organization_id and a.prospect_id = p.id
    where p.organization_id = ${tx.organization_id} and p.id = any(${prospect_ids})
    order by a.address_hmac, ${strength} desc nulls last`);
  return addresses.flatMap(({ hmac, reason: mark }) => {
    const reason = strongerOf(mark, bars);
    return reason === null
      ? []
      : [{ id: newId('fdn'), hmac: hmac.toString('hex'), reason, is_marked: reason === mark }];
  });
}

const strongerOf = (one: Reason | null, other: Reason | null): Reason | null =>
  one === null || (other !== null && weakest_first.indexOf(other) > weakest_first.indexOf(one)) ? other : one;
