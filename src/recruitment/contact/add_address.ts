import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { email } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Actor, actorOf, nobody } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { recordActivity } from '../prospects/activity.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { prospects } from '../prospects/prospect.ts';
import { type AddressHashes, hashesOf } from './address.ts';
import { type AddressSource, type EmailAddress, emailAddresses, opened, type Verification } from './email_address.ts';
import { refreshEmailStatus, usable } from './email_status.ts';
import { verificationOf } from './mail_host.ts';
import { noteReason, refreshBars } from './mark.ts';
import type { Suppression } from './suppression.ts';

/** An address as something found it. */
export interface FoundAddress {
  email: string;
  source: AddressSource;
  verification: Verification;
  source_url?: string | null;
  /** The best first; in the order of the addresses where it is left out. */
  rank?: number;
}

/**
 * Adds addresses to a prospect. Those that it has keep their place; a verification that says more replaces `unknown`. Tells `email.revealed`
 * where a usable one is new, and marks the prospect where one of them is barred. To be called before rows are locked.
 * @returns how many are new; undefined where the prospect is gone
 */
export async function addAddresses(
  tx: Tx,
  vault: Vault,
  prospect_id: string,
  found: FoundAddress[],
  by: Actor = nobody,
): Promise<number | undefined> {
  await holdSuppressions(tx);
  const [prospect] = await prospects.lockMany(tx, [prospect_id]);
  if (!prospect) return undefined;
  const added = await insertAddresses(tx, vault, prospect_id, found);
  await refreshEmailStatus(tx, [prospect_id]);
  if (added.length === 0) return 0;
  const sources = [...new Set(added.map(({ source }) => source))];
  recordActivity(
    tx,
    'email_added',
    by,
    sources.map((source) => ({ prospect_id, data: { source, addresses: added.length } })),
  );
  await markBarred(tx, vault, prospect_id, added, by);
  await tellRevealed(tx, prospect_id, added);
  return added.length;
}

type Added = AddressHashes & Pick<EmailAddress, 'id' | 'source' | 'verification'>;

async function insertAddresses(tx: Tx, vault: Vault, prospect_id: string, found: FoundAddress[]): Promise<Added[]> {
  const hash = await keyedHash(tx, vault);
  const added: Added[] = [];
  for (const [nth, { email: address, source, verification, source_url = null, rank = nth + 1 }] of found.entries()) {
    const address_id = newId('fea');
    const { address_hmac, domain_hmac } = hashesOf(hash, address);
    const sealed = vault.encrypt(address, address_id);
    const row = await tx.one<{ is_new: boolean }>(sql`
      insert into recruitment.email_address as t
        (organization_id, id, prospect_id, address, address_hmac, domain_hmac, rank, source, source_url, verification, found_at, created_at)
      values (${tx.organization_id}, ${address_id}, ${prospect_id}, ${sealed}, ${address_hmac}, ${domain_hmac}, ${rank}, ${source},
        ${source_url}, ${verification}, ${tx.now}, ${tx.now})
      on conflict (organization_id, prospect_id, address_hmac) do update
      set verification = case when excluded.verification = 'unknown' then t.verification else excluded.verification end
      returning t.id = ${address_id} as is_new`);
    if (row.is_new) added.push({ id: address_id, address_hmac, domain_hmac, source, verification });
  }
  return added;
}

/** Tells that addresses of a prospect are known, with source and verification of the best one. Nothing is told where none of the new ones is usable. */
async function tellRevealed(tx: Tx, prospect_id: string, added: Pick<EmailAddress, 'id'>[]): Promise<void> {
  const known = await tx.all<Pick<EmailAddress, 'id' | 'source' | 'verification'>>(sql`
    select a.id, a.source, a.verification
    from recruitment.email_address a
    where a.organization_id = ${tx.organization_id} and a.prospect_id = ${prospect_id} and ${usable}
    order by a.rank, a.id`);
  const [best] = known;
  if (!best || !known.some(({ id }) => added.some((one) => one.id === id))) return;
  const { source, verification } = best;
  tx.emit(event('email.revealed', tx.organization_id, { prospect_id, source, verification, addresses: known.length }));
}

/** What bars an address bars its prospect too. */
async function markBarred(tx: Tx, vault: Vault, prospect_id: string, added: AddressHashes[], by: Actor): Promise<void> {
  const hashes = added.map(({ address_hmac }) => address_hmac);
  const entries = await tx.all<Pick<Suppression, 'id' | 'reason'>>(sql`
    select t.id, t.reason from recruitment.suppression t
    where ${tenant(tx)} and t.lifted_at is null and t.hmac = any(${hashes}::bytea[])
    order by t.created_at, t.id`);
  for (const { id, reason } of entries) await noteReason(tx, [prospect_id], id, reason, by);
  await refreshBars(tx, await keyedHash(tx, vault), [prospect_id], by);
}

export const addressOperations: Operation[] = [
  operation({
    name: 'emails.create',
    title: 'Add an email address',
    method: 'POST',
    path: `${base_path}/prospects/{id}/emails`,
    scope: 'prospects:write',
    summary: 'Adds an email address to a prospect.',
    doc: 'Emits `email.revealed` with the source `manual`. If the address or its domain is barred from outreach, the prospect is marked Do not contact.',
    params: idParams,
    body: z.strictObject({ email: email.describe('The address.') }),
    reply: emailAddresses.schema,
    status: 201,
    errors: ['sample_prospect', 'resource_already_exists'],
    async run({ tx, params, body, caller, services: { vault } }) {
      const { id: prospect_id } = await prospects.get(tx, params.id);
      const added = await addManually(tx, vault, prospect_id, body.email, await actorOf(tx, caller));
      const address = await addressKnownAs(tx, vault, prospect_id, body.email);
      if (!added) throw alreadyExists('email', 'The prospect has this address already.', address);
      return address as EmailAddress;
    },
  }),
  operation({
    name: 'emails.delete',
    method: 'DELETE',
    path: `${base_path}/emails/{id}`,
    scope: 'prospects:write',
    summary: 'Deletes an email address.',
    doc: 'A do-not-contact entry on the address stays. If only this address caused the prospect to be marked Do not contact, the mark is lifted, which emits `do_not_contact.lifted`.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params, caller, services: { vault } }) {
      const { prospect_id } = await emailAddresses.get(tx, params.id);
      await holdSuppressions(tx);
      await prospects.lockMany(tx, [prospect_id]);
      await emailAddresses.get(tx, params.id, { lock: true });
      await emailAddresses.deleteOutright(tx, params.id);
      const by = await actorOf(tx, caller);
      recordActivity(tx, 'email_deleted', by, [{ prospect_id }]);
      await refreshBars(tx, await keyedHash(tx, vault), [prospect_id], by);
      return { id: params.id, object: 'email_address', deleted: true as const };
    },
  }),
];

/** Adds an address that a person or the API names: it comes before all that were found. */
export const addManually = (tx: Tx, vault: Vault, prospect_id: string, address: string, by: Actor) =>
  verificationOf(address).then((verification) =>
    addAddresses(tx, vault, prospect_id, [{ email: address, source: 'manual', verification, rank: 0 }], by),
  );

async function addressKnownAs(
  tx: Tx,
  vault: Vault,
  prospect_id: string,
  address: string,
): Promise<EmailAddress | undefined> {
  const { address_hmac } = hashesOf(await keyedHash(tx, vault), address);
  const record = await emailAddresses.find(
    tx,
    sql`${tenant(tx)} and t.prospect_id = ${prospect_id} and t.address_hmac = ${address_hmac}`,
  );
  return record && opened(vault, record);
}
