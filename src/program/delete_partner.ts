import sql from 'sql-template-tag';
import { most_at_once } from '../core/jobs/task.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { voidOpenCommissions } from './commissions/commission_void.ts';
import { event } from './events/event.ts';
import { dropAliases } from './partners/handle.ts';
import { type Partner, partners } from './partners/partner.ts';
import { deletePendingPayouts } from './payouts/release.ts';
import { deleteLinks } from './tracking/link_delete.ts';

/** Deletes a partner. The application, the links, the referrals that have not signed up, and the unpaid commissions end with it. */
export const deletePartnerOperations: Operation[] = [
  operation({
    name: 'partners.delete',
    method: 'DELETE',
    path: '/v1/partners/{id}',
    scope: 'partners:write',
    summary: 'Deletes a partner.',
    doc: 'The links of the partner are deleted, and its pending payouts are deleted, and open commissions are voided with the reason `partner_deleted`. Payouts in processing settle; paid commissions stay on record. Beyond some hundred links and commissions, a worker does the rest: until then they are still listed, but no click is attributed, and nothing matures or is paid.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await deletePartner(tx, await partners.get(tx, params.id, { lock: true }));
      return { id: params.id, object: 'partner', deleted: true as const };
    },
  }),
];

async function deletePartner(tx: Tx, partner: Partner): Promise<void> {
  const { id, program_id } = partner;
  await partners.update(tx, id, { deleted_at: tx.now });
  await tx.all(sql`
    update program.application t set status = 'withdrawn', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.partner_id = ${id} and t.status = 'pending'`);
  tx.emit(event('affiliate.deleted', partner));
  await dropAliases(tx, id);
  if ((await endWithPartner(tx, partner, most_at_once, { at_least: 0 })) < most_at_once) return;
  const { organization_id, request_id } = tx;
  tx.enqueue(
    'program/delete_partner',
    { organization_id, request_id, id, program_id },
    { job_key: `delete_partner:${id}` },
  );
}

/**
 * Ends what ends with a partner who is deleted, at most so many rows of it. What is left matures no more, and is not paid.
 * @param at_least how many payouts are deleted, however many commissions they have
 * @returns how many; `most` or more where there may be others
 */
export async function endWithPartner(
  tx: Tx,
  partner: Pick<Partner, 'id' | 'program_id'>,
  most: number,
  { at_least = 1 } = {},
): Promise<number> {
  let left = most;
  left -= await endVisits(tx, partner, left);
  if (left > 0) left -= await deleteLinks(tx, sql`t.partner_id = ${partner.id}`, left);
  if (left > 0) left -= await deletePendingPayouts(tx, partner.id, left, at_least);
  if (left > 0) left -= await voidOpenCommissions(tx, partner, 'partner_deleted', left);
  return most - left;
}

/** Earlier clicks no longer hold the visitor's referral: another partner's click takes it. @returns how many were ended */
async function endVisits(
  tx: Tx,
  { id, program_id }: Pick<Partner, 'id' | 'program_id'>,
  most: number,
): Promise<number> {
  const ended = await tx.all(sql`
    with live as (
      select t.id
      from program.referral t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.partner_id = ${id} and t.deleted_at is null
        and t.status = 'visit' and t.expires_at > ${tx.now}::timestamptz
      limit ${most}
      for no key update
    )
    update program.referral t set expires_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(array(select l.id from live l))
    returning t.id`);
  return ended.length;
}
