import type { Tx } from '../../../../core/postgres/transaction.ts';
import { finishCampaigns } from '../ending/finish.ts';
import { lockCampaign } from '../records/campaign.ts';
import { isUnscheduling, requestUnschedule } from '../records/unschedule.ts';
import { requestSchedule } from '../scheduling/request_schedule.ts';
import { guardBounces } from './guards.ts';
import { pauseCampaign } from './pause.ts';
import { hasConnectedInbox } from './resume.ts';

/** Finishes a campaign that is over, pauses one that bounced too often or whose last inbox was disconnected meanwhile, has sequences scheduled that are not. */
export async function tidyCampaign(tx: Tx, campaign_id: string): Promise<void> {
  const { state, inbox_ids } = await lockCampaign(tx, campaign_id);
  if (state !== 'sending') return;
  await finishCampaigns(tx, [campaign_id]);
  await guardBounces(tx, campaign_id);
  if ((await lockCampaign(tx, campaign_id)).state !== 'sending') return;
  if (await isUnscheduling(tx, campaign_id)) requestUnschedule(tx, campaign_id);
  else if (await hasConnectedInbox(tx, inbox_ids)) requestSchedule(tx, campaign_id);
  else await pauseCampaign(tx, campaign_id, 'inbox', 'no_inbox');
}
