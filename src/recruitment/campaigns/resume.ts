import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { requireFeature } from '../plan/plan.ts';
import { wakeInbox } from '../sequences/wake_inbox.ts';
import { type Campaign, campaigns, type PauseCause } from './campaign.ts';
import { reasonOf, withoutCauses } from './causes.ts';
import { requestSchedule } from './request_schedule.ts';

/** Takes causes from a paused campaign, whose row the caller has locked. Once none is left it sends again, and tells `campaign.resumed`. */
export async function takeCauses(tx: Tx, before: Campaign, removed: PauseCause[]): Promise<Campaign> {
  const pause_causes = withoutCauses(before.pause_causes, removed);
  if (pause_causes.length === before.pause_causes.length) return before;
  const { id: campaign_id, brand_id } = before;
  if (pause_causes.length > 0) {
    const pause_reason = reasonOf(pause_causes, before.pause_reason);
    return (await campaigns.update(tx, campaign_id, { pause_causes, pause_reason })) as Campaign;
  }
  const sending = { state: 'sending', pause_causes, pause_reason: null, paused_at: null };
  const resumed = await campaigns.update(tx, campaign_id, sending);
  tx.emit(event('campaign.resumed', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  requestSchedule(tx, campaign_id);
  return resumed as Campaign;
}

/**
 * "Guards and the plan end by /resume alone", and so does a person's pause. A campaign without a connected inbox stays paused.
 * @throws Problem feature_not_in_plan; invalid_state_transition where only a connected inbox is missing
 */
export async function resumeCampaign(tx: Tx, before: Campaign): Promise<Campaign> {
  await requireFeature(tx, 'outreach');
  if (!(await hasConnectedInbox(tx, before.inbox_ids))) return waitForInbox(tx, before);
  const resumed = await takeCauses(tx, before, ['user', 'guard', 'plan', 'inbox']);
  if (resumed !== before) for (const inbox_id of new Set(resumed.inbox_ids)) wakeInbox(tx, inbox_id);
  return resumed;
}

/** What a person may end is ended; that no inbox is connected becomes the cause, also where `inbox_ids` was changed to none that is. */
async function waitForInbox(tx: Tx, { id, pause_causes }: Campaign): Promise<Campaign> {
  if (pause_causes.every((cause) => cause === 'inbox'))
    throw new Problem(
      'invalid_state_transition',
      'No inbox of the campaign is connected. Reconnect one, or set `inbox_ids` to one that is connected, then resume.',
    );
  return (await campaigns.update(tx, id, { pause_causes: ['inbox'], pause_reason: 'no_inbox' })) as Campaign;
}

export async function hasConnectedInbox(tx: Tx, inbox_ids: string[]): Promise<boolean> {
  const found = await tx.maybe(sql`
    select from recruitment.inbox t
    where ${tenant(tx)} and t.id = any(${inbox_ids}) and t.status = 'connected' and t.deleted_at is null
    limit 1`);
  return found !== undefined;
}
