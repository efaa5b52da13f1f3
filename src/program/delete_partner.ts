import sql from 'sql-template-tag';
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

/** What ends with a partner: the application, the links, the referrals that have not signed up, and the unpaid commissions. */
export const deletePartnerOperations: Operation[] = [
  operation({
    name: 'partners.delete',
    method: 'DELETE',
    path: '/v1/partners/{id}',
    scope: 'partners:write',
    summary: 'Deletes a partner.',
    doc: 'The links of the partner are deleted, and its pending payouts are deleted, and open commissions are voided with the reason `partner_deleted`. Payouts in processing settle; paid commissions stay on record.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await deletePartner(tx, await partners.get(tx, params.id, { lock: true }));
      return { id: params.id, object: 'partner', deleted: true as const };
    },
  }),
];

async function deletePartner(tx: Tx, partner: Partner): Promise<void> {
  const { id: partner_id, program_id } = partner;
  await partners.update(tx, partner_id, { deleted_at: tx.now });
  await tx.all(sql`
    update program.application t set status = 'withdrawn', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.partner_id = ${partner_id} and t.status = 'pending'`);
  // Earlier clicks no longer hold the visitor's referral: another partner's click takes it.
  await tx.all(sql`
    update program.referral t set expires_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.program_id = ${program_id} and t.partner_id = ${partner_id} and t.deleted_at is null
      and t.status = 'visit' and t.expires_at > ${tx.now}::timestamptz`);
  tx.emit(event('affiliate.deleted', partner));
  await dropAliases(tx, partner_id);
  await deleteLinks(tx, sql`t.partner_id = ${partner_id}`);
  await deletePendingPayouts(tx, partner_id);
  await voidOpenCommissions(tx, partner_id, 'partner_deleted');
}
