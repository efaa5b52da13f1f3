/**
 * Stops campaigns for good, and their sequences silently, beyond 500 by the job `stop_sequences`. Emits one `campaign.stopped`, also of a draft. A brand that is
 * deleted stops all of its campaigns, beyond 500 by the job `stop_campaigns`.
 */
import sql from 'sql-template-tag';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { transition } from '../../core/resource/states.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { endSequences } from '../sequences/stop.ts';
import { type Campaign, campaigns, lockCampaign, transitions } from './campaign.ts';

export const stopOperations: Operation[] = [
  operation({
    name: 'campaigns.stop',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/stop`,
    scope: 'campaigns:write',
    summary: 'Stops a campaign for good, and all of its sequences.',
    doc: 'It cannot be resumed. Emits `campaign.stopped`. A campaign that is stopped stays as it is.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const campaign = await lockCampaign(tx, params.id);
      transition(transitions, campaign.state, 'stop');
      return campaign.state === 'stopped' ? campaign : stopCampaign(tx, campaign);
    },
  }),
];

/**
 * Stops a campaign for good, whose row the caller has locked, and its sequences. Of many a job ends those that are left: nothing is sent by a
 * stopped campaign meanwhile.
 */
async function stopCampaign(tx: Tx, campaign: Pick<Campaign, 'id' | 'brand_id'>): Promise<Campaign> {
  const { id: campaign_id, brand_id } = campaign;
  const count = await endSequencesOf(tx, campaign_id);
  const stopped = await campaigns.update(tx, campaign_id, {
    ...{ state: 'stopped', pause_causes: [], pause_reason: null, paused_at: null, stopped_at: tx.now },
  });
  tx.emit(event('campaign.stopped', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  if (count === most_at_once) requestStop(tx, campaign_id);
  return stopped as Campaign;
}

function requestStop(tx: Tx, campaign_id: string): void {
  const { organization_id, request_id } = tx;
  const job_key = `stop_sequences:${campaign_id}`;
  tx.enqueue('recruitment/stop_sequences', { organization_id, request_id, campaign_id }, { job_key });
}

/** Ends sequences of a campaign that is stopped, at most so many as a transaction does. @returns how many */
export const endSequencesOf = async (tx: Tx, campaign_id: string): Promise<number> =>
  (await endSequences(tx, sql`t.campaign_id = ${campaign_id}`, 'stopped', most_at_once)).length;

/** "Deleting stops its campaigns." Of many a job stops those that are left: nothing is sent for a deleted brand meanwhile. */
export async function stopCampaignsOf(tx: Tx, brand_id: string): Promise<void> {
  if ((await stopSomeOf(tx, brand_id)) < most_at_once) return;
  const { organization_id, request_id } = tx;
  const job_key = `stop_campaigns:${brand_id}`;
  tx.enqueue('recruitment/stop_campaigns', { organization_id, request_id, brand_id }, { job_key });
}

/** Stops campaigns of a brand, at most so many as a transaction does, and of their sequences as many; each has a job for the others. @returns how many */
export async function stopSomeOf(tx: Tx, brand_id: string): Promise<number> {
  const stopped = await tx.all<{ id: string }>(sql`
    with unended as materialized (
      select t.id from recruitment.campaign t
      where ${tenant(tx)} and t.brand_id = ${brand_id} and t.state not in ('stopped', 'finished')
      order by t.id
      limit ${most_at_once}
      for no key update of t
    )
    update recruitment.campaign t
    set state = 'stopped', pause_causes = '{}', pause_reason = null, paused_at = null, stopped_at = ${tx.now}::timestamptz,
      updated_at = ${tx.now}::timestamptz
    from unended
    where ${tenant(tx)} and t.id = unended.id
    returning t.id`);
  const ids = stopped.map(({ id }) => id).sort();
  const ended = await endSequences(tx, sql`t.campaign_id = any(${ids})`, 'stopped', most_at_once);
  for (const campaign_id of ids) {
    tx.emit(event('campaign.stopped', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
    if (ended.length === most_at_once) requestStop(tx, campaign_id);
  }
  return ids.length;
}
