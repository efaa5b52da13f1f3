import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { email } from '../../core/values/fields.ts';
import { alreadyExists } from '../../core/values/problem.ts';
import { type Actor, actorOf, nobody } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { recordActivity } from '../prospects/activity.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { keyedHash } from '../prospects/keyed_hash.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { hashesOf } from './address.ts';
import { byHand, first_found_rank } from './by_hand.ts';
import { type AddressSource, type EmailAddress, emailAddresses, opened, type Verification } from './email_address.ts';
import { refreshEmailStatus } from './email_status.ts';
import { emitRevealed, insertAddresses, markBarred } from './insert_address.ts';
import { refreshBars } from './refresh_bars.ts';

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
  const addresses = found.map((one, nth) => ({
    ...{ ...one, prospect_id },
    ...{ source_url: one.source_url ?? null, rank: one.rank ?? first_found_rank + nth },
  }));
  const added = await insertAddresses(tx, vault, addresses, verified);
  if (added.length === 0) {
    await refreshEmailStatus(tx, [prospect_id]);
    return 0;
  }
  const sources = [...new Set(added.map(({ source }) => source))];
  recordActivity(
    tx,
    'email_added',
    by,
    sources.map((source) => ({ prospect_id, data: { source, addresses: added.length } })),
  );
  await markBarred(tx, vault, added, by);
  await emitRevealed(tx, added);
  return added.length;
}

/** Updates a known address that was found again. */
const verified = sql`
  do update
  set verification = case when excluded.verification = 'unknown' then t.verification else excluded.verification end`;

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
      const prospect = await prospects.get(tx, params.id);
      const added = await addManually(tx, vault, prospect, body.email, await actorOf(tx, caller));
      const address = await addressKnownAs(tx, vault, prospect.id, body.email);
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
export const addManually = async (
  tx: Tx,
  vault: Vault,
  prospect: Pick<Prospect, 'id' | 'key'>,
  address: string,
  by: Actor,
): Promise<number | undefined> => addAddresses(tx, vault, prospect.id, [await byHand(address, prospect)], by);

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
