/**
 * The sweep of each minute: starts campaigns at their time, finishes what is over, has sequences scheduled that are not, and pauses campaigns that bounced too
 * often or lost their last inbox in a race.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { guardBounces, is_over_limit } from './bounce_guard.ts';
import { lockCampaign } from './campaign.ts';
import { finishCampaigns, is_over } from './finish.ts';
import { hasConnectedInbox, pauseCampaign } from './pause.ts';
import { isUnscheduling, requestSchedule, requestUnschedule } from './reschedule.ts';

/** A campaign that starts, or for which what no request has done is made up for. */
interface Due {
  organization_id: string;
  campaign_id: string;
  is_start: boolean;
}

const connected = sql`exists (
  select from recruitment.inbox i
  where i.organization_id = t.organization_id and i.id = any(t.inbox_ids) and i.status = 'connected' and i.deleted_at is null)`;

/** Finds the campaigns of all organizations for which something is to be done. */
export const campaignsDue = (tx: Tx, tick: string): Promise<Due[]> =>
  tx.all<Due>(sql`
    select t.organization_id, t.id as campaign_id, true as is_start from recruitment.campaign t
    where t.state = 'scheduled' and t.start_at <= ${tick}::timestamptz
    union all
    select t.organization_id, t.id, false from recruitment.campaign t
    where t.state = 'sending' and (t.is_unscheduling or ${is_over} or not ${connected} or ${is_over_limit} or exists (
      select from recruitment.sequence s
      where s.organization_id = t.organization_id and s.campaign_id = t.id and s.open and s.due_at is null))`);

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
