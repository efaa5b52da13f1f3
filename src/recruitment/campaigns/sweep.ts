import type { Tx } from '../../core/postgres/transaction.ts';
import { lockCampaign } from './campaign.ts';
import { finishCampaigns } from './finish.ts';
import { guardBounces } from './guards.ts';
import { pauseCampaign } from './pause.ts';
import { requestSchedule } from './request_schedule.ts';
import { hasConnectedInbox } from './resume.ts';
import { isUnscheduling, requestUnschedule } from './unschedule.ts';

/** Finishes a campaign that is over, pauses one that bounced too often or whose last inbox was disconnected meanwhile, has sequences scheduled that are not. */
export async function sweepCampaign(tx: Tx, campaign_id: string): Promise<void> {
  const { state, inbox_ids } = await lockCampaign(tx, campaign_id);
  if (state !== 'sending') return;
  await finishCampaigns(tx, [campaign_id]);
  await guardBounces(tx, campaign_id);
  if ((await lockCampaign(tx, campaign_id)).state !== 'sending') return;
  if (await isUnscheduling(tx, campaign_id)) requestUnschedule(tx, campaign_id);
  else if (await hasConnectedInbox(tx, inbox_ids)) requestSchedule(tx, campaign_id);
  else await pauseCampaign(tx, campaign_id, 'inbox', 'no_inbox');
}
