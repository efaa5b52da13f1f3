import sql from 'sql-template-tag';
import { most_at_once } from '../../../../core/jobs/task.ts';
import type { Tx } from '../../../../core/postgres/transaction.ts';
import { tenant } from '../../../../core/resource/resource.ts';
import { event } from '../../../events/event.ts';
import { endSequences } from '../../../sequences/stop.ts';
import { type Campaign, campaigns } from '../records/campaign.ts';

/**
 * Stops a campaign for good, whose row the caller has locked, and its sequences. Of many a job ends those that are left: nothing is sent by a
 * stopped campaign meanwhile.
 */
export async function stopCampaign(tx: Tx, campaign: Pick<Campaign, 'id' | 'brand_id'>): Promise<Campaign> {
  const { id: campaign_id, brand_id } = campaign;
  const count = await endSequencesOf(tx, campaign_id);
  const stopped = await campaigns.update(tx, campaign_id, {
    ...{ state: 'stopped', pause_causes: [], pause_reason: null, paused_at: null, stopped_at: tx.now },
  });
  tx.emit(event('campaign.stopped', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  if (count === most_at_once) {
    const { organization_id, request_id } = tx;
    const job_key = `stop_sequences:${campaign_id}`;
    tx.enqueue('recruitment/stop_sequences', { organization_id, request_id, campaign_id }, { job_key });
  }
  return stopped as Campaign;
}

/** Ends sequences of a campaign that is stopped, at most so many as a transaction does. @returns how many */
export const endSequencesOf = async (tx: Tx, campaign_id: string): Promise<number> =>
  (await endSequences(tx, sql`t.campaign_id = ${campaign_id}`, 'stopped', most_at_once)).length;

/** "Deleting stops its campaigns." */
export async function stopCampaignsOf(tx: Tx, brand_id: string): Promise<void> {
  const open = await tx.all<{ id: string; brand_id: string }>(sql`
    select t.id, t.brand_id from recruitment.campaign t
    where ${tenant(tx)} and t.brand_id = ${brand_id} and t.state not in ('stopped', 'finished')
    order by t.id
    for no key update of t`);
  for (const campaign of open) await stopCampaign(tx, campaign);
}
