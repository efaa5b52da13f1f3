import sql from 'sql-template-tag';
import { most_at_once } from '../core/jobs/task.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { actorOf } from './brands/acting.ts';
import { brands } from './brands/brand.ts';
import { stopCampaignsOf } from './campaigns/end.ts';
import { barAddressesOf } from './contact/bar_addresses.ts';
import { refreshEmailStatus } from './contact/email_status.ts';
import { base_path } from './events/base_path.ts';
import { lockSuppressions } from './prospects/barred_site.ts';

export const deleteBrandOperations: Operation[] = [
  operation({
    name: 'brands.delete',
    method: 'DELETE',
    path: `${base_path}/brands/{id}`,
    scope: 'brands:write',
    summary: 'Deletes a brand.',
    doc: 'Its prospects can no longer be read, and are erased with everything stored about them by an hourly job. This cannot be undone. The addresses of prospects who are marked Do not contact stay barred, in every brand. Its campaigns are stopped. Emits `campaign.stopped` for each, and `do_not_contact.added` for each other prospect that this marks. Beyond some hundred marked prospects, a worker bars the addresses of the others when it erases them, which begins at once.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params, caller, services: { vault } }) {
      await brands.get(tx, params.id, { lock: true });
      await lockSuppressions(tx);
      await stopCampaignsOf(tx, params.id);
      const marked = await markedOf(tx, params.id);
      await barAddressesOf(tx, vault, marked, null, await actorOf(tx, caller));
      await refreshEmailStatus(tx, marked);
      await brands.update(tx, params.id, { deleted_at: tx.now });
      // Erasing a prospect bars the addresses, too.
      if (marked.length >= most_at_once) {
        const { organization_id, request_id, now: tick } = tx;
        tx.enqueue('recruitment/purge_organization', { organization_id, run_id: request_id ?? params.id, tick });
      }
      return { id: params.id, object: 'brand', deleted: true as const };
    },
  }),
];

/** The prospects whose marks go with the brand, at most as many as a request changes. */
async function markedOf(tx: Tx, brand_id: string): Promise<string[]> {
  const marked = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.prospect t
    where ${tenant(tx)} and t.brand_id = ${brand_id} and t.do_not_contact_reason is not null
    order by t.id
    limit ${most_at_once}`);
  return marked.map(({ id }) => id);
}
