import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { fixes } from '../events/campaigns.ts';
import { event } from '../events/event.ts';
import { type Campaign, campaigns, lockCampaign, type PauseCause, type PauseReason } from './campaign.ts';
import { transitions } from './campaign_states.ts';
import { reasonOf, withCause } from './causes.ts';

/** What a guard counted since the last pause. */
export interface Counted {
  sent: number;
  bounced: number;
}

/**
 * Adds a cause to those of a campaign that sends or is paused. Whoever stops it from sending tells `campaign.paused`; a further cause is kept and
 * tells nothing. In other states nothing happens. Locks the campaign.
 * @param reason null: a person pauses it
 */
export async function pauseCampaign(
  tx: Tx,
  campaign_id: string,
  cause: PauseCause,
  reason: PauseReason | null,
  counted: Counted | null = null,
): Promise<Campaign> {
  const before = await lockCampaign(tx, campaign_id);
  if (!allows(transitions, before.state, 'pause') || before.pause_causes.includes(cause)) return before;
  const pause_causes = withCause(before.pause_causes, cause);
  const stops = before.state === 'sending';
  const known = cause === 'guard' ? reason : before.pause_reason;
  const paused = await campaigns.update(tx, campaign_id, {
    ...{ state: 'paused', pause_causes, pause_reason: reasonOf(pause_causes, known) },
    ...(stops ? { paused_at: tx.now, counted_since: tx.now } : {}),
  });
  if (stops) tell(tx, before, reason, counted);
  return paused as Campaign;
}

function tell(tx: Tx, { id, brand_id }: Campaign, reason: PauseReason | null, counted: Counted | null): void {
  const { sent = null, bounced = null } = counted ?? {};
  const about = { brand_id, campaign_id: id, occurred_at: tx.now };
  const fix = reason === null ? null : fixes[reason];
  tx.emit(event('campaign.paused', tx.organization_id, { ...about, reason, fix, sent, bounced }));
}

/** "A downgrade below outreach pauses each sending campaign." Those that are paused do not send again before they are resumed. */
export async function pauseForPlan(tx: Tx): Promise<void> {
  const open = await tx.all<{ id: string }>(sql`
    select t.id from recruitment.campaign t
    where ${tenant(tx)} and t.state in ('sending', 'paused')
    order by t.id
    for no key update of t`);
  for (const { id } of open) await pauseCampaign(tx, id, 'plan', 'not_entitled');
}
