import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { base_path } from '../events/base_path.ts';
import { lift_reasons } from '../events/fields.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import type { End } from '../sequences/stop.ts';
import { type AddressHashes, hashesOf } from './address.ts';

export const kinds = ['address', 'domain', 'prospect'] as const;
export const reasons = ['manual', 'angry_reply', 'legal', 'unsubscribed', 'complaint', 'hard_bounce'] as const;
export type Reason = (typeof reasons)[number];
/** Reasons that mark the prospects they hit, and emit the event. The others bar an address alone. */
export const mark_reasons = ['manual', 'legal', 'angry_reply', 'complaint'] as const;
export type MarkReason = (typeof mark_reasons)[number];
export const isMark = (reason: Reason): reason is MarkReason => mark_reasons.includes(reason as MarkReason);
/** Reasons that no later reason replaces: the person said so. */
export const lasting_reasons: Reason[] = ['unsubscribed', 'complaint'];
/** An entry has one reason: the strongest that was given. */
export const weakest_first: Reason[] = ['hard_bounce', 'manual', 'angry_reply', 'legal', 'unsubscribed', 'complaint'];
export const outranks = (reason: Reason, other: Reason): boolean =>
  weakest_first.indexOf(reason) > weakest_first.indexOf(other);

/** The resource of suppressions. `value` is still sealed in its records: `openedEntry` reads it. */
export const suppressions = resource({
  object: 'do_not_contact_entry',
  plural: 'do_not_contact',
  base_path,
  table: 'recruitment.suppression',
  unique: { suppression_hmac_unique: null, suppression_prospect_unique: 'prospect_id' },
  doc: 'A do-not-contact entry: it bars an address, a domain, or all addresses of a prospect from outreach.',
  fields: {
    id: id('fdn'),
    object: objectName('do_not_contact_entry'),
    kind: z
      .enum(kinds)
      .describe(
        '`address`: one address. `domain`: all addresses at a domain. `prospect`: all addresses of a prospect.',
      ),
    value: text
      .nullable()
      .describe(
        'The address or the domain. Null for the kind `prospect`, and if the person was erased: only a hash is kept then.',
      ),
    prospect_id: id('fdi').nullable().describe('The prospect. Null for an address or a domain.'),
    reason: z
      .enum(reasons)
      .describe(
        'Why. `unsubscribed` and `complaint` cannot be lifted. `hard_bounce`: mail to the address cannot be delivered.',
      ),
    by_user_id: id('usr').nullable().describe('Who added it. Null: the API or the system.'),
    created_at: timestamp,
    updated_at: timestamp,
    lifted_at: timestamp.nullable().describe('When it was lifted. Null if not lifted.'),
    lift_reason: z.enum(lift_reasons).nullable().describe('Why it was lifted. Null if not lifted.'),
    lifted_by_user_id: id('usr').nullable().describe('Who lifted it. Null: the API, or not lifted.'),
  },
});

export type Suppression = z.infer<typeof suppressions.record>;

/** The record with its value in the clear. */
export const openedEntry = (vault: Vault, record: Suppression): Suppression => ({
  ...record,
  value: record.value === null ? null : vault.decrypt(record.value as unknown as Buffer, record.id),
});

/** Returns how an entry ends sequences. */
export function endOf(reason: Reason): End {
  if (reason === 'hard_bounce') return 'bounced';
  return reason === 'unsubscribed' ? 'unsubscribed' : 'stopped';
}

/** The entries `s` that bar a row `t` with the hashes of an address and a prospect: a sequence, a message. */
const barring = sql`(
  select s.id, s.reason, s.refresh_after from recruitment.suppression s
  where s.organization_id = t.organization_id and s.lifted_at is null and s.hmac in (t.address_hmac, t.domain_hmac)
  union all
  select s.id, s.reason, s.refresh_after from recruitment.suppression s
  where s.organization_id = t.organization_id and s.lifted_at is null and s.prospect_id = t.prospect_id
) as s`;
export const is_barred = sql`exists (select from ${barring})`;
/** The reason of an entry that has barred it, and whose job is still to end it. Null: there is none. */
export const being_barred = sql`(select s.reason from ${barring} where s.refresh_after is not null order by s.id limit 1)`;

/**
 * Returns whether an address of a prospect must not be written to, in any of the three layers. Marks wait until the transaction ends, so
 * that no send begins after one was answered.
 * @param address in the clear, or its hashes
 */
export async function isSuppressed(
  tx: Tx,
  vault: Vault,
  address: string | AddressHashes,
  prospect_id: string,
): Promise<{ id: string; reason: Reason } | undefined> {
  await holdSuppressions(tx);
  const { address_hmac, domain_hmac } =
    typeof address === 'string' ? hashesOf(await keyedHash(tx, vault), address) : address;
  return tx.maybe<{ id: string; reason: Reason }>(sql`
    select t.id, t.reason from ${suppressions.from}
    where ${tenant(tx)} and t.lifted_at is null
      and (t.hmac in (${address_hmac}, ${domain_hmac}) or t.prospect_id = ${prospect_id})
    order by t.created_at, t.id
    limit 1`);
}
