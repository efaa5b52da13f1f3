import type { Tx } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { transition } from '../../core/resource/states.ts';
import { Problem } from '../../core/values/problem.ts';
import { event } from '../events/event.ts';
import { type Campaign, campaigns, lockCampaign } from './campaign.ts';
import { transitions } from './campaign_states.ts';
import type { Blocking } from './finding.ts';
import { preflight } from './preflight.ts';
import { requestSchedule } from './request_schedule.ts';

/**
 * Starts a campaign, now or at a time to come. The caller has locked it.
 * @param start_at null: now
 * @throws Problem invalid_state_transition, also with what blocks it
 */
export async function launch(
  tx: Tx,
  campaign: Campaign,
  start_at: string | null,
  services: Services,
): Promise<Campaign> {
  const is_later = start_at !== null && start_at > tx.now;
  const state = transition(transitions, campaign.state, is_later ? 'schedule' : 'launch');
  const { blocking } = await preflight(tx, campaign, services);
  if (blocking.length > 0) throw notReady(blocking);
  if (!is_later) return start(tx, { ...campaign, start_at: null });
  return (await campaigns.update(tx, campaign.id, { state, start_at, launch_error: null })) as Campaign;
}

const notReady = (blocking: Blocking[]): Problem => {
  const [first] = blocking;
  return new Problem('preflight_failed', `The campaign cannot be launched. ${sentences(blocking)}`, {
    ...(first?.field ? { param: first.field } : {}),
  });
};

const sentences = (blocking: Blocking[]): string =>
  blocking.map(({ code, message }) => `${code}: ${message}`).join(' ');

async function start(tx: Tx, { id: campaign_id, brand_id, start_at }: Campaign): Promise<Campaign> {
  const started = await campaigns.update(tx, campaign_id, {
    ...{ state: 'sending', start_at, launched_at: tx.now, counted_since: tx.now, launch_error: null },
  });
  tx.emit(event('campaign.launched', tx.organization_id, { brand_id, campaign_id, occurred_at: tx.now }));
  requestSchedule(tx, campaign_id);
  return started as Campaign;
}

/** The job: starts a campaign at its time. "Where preflight fails then: back to draft with launch_error." */
export async function startScheduled(tx: Tx, campaign_id: string, services: Services): Promise<void> {
  const campaign = await lockCampaign(tx, campaign_id);
  if (campaign.state !== 'scheduled' || campaign.start_at === null || campaign.start_at > tx.now) return;
  const { blocking } = await preflight(tx, campaign, services);
  if (blocking.length === 0) {
    await start(tx, campaign);
    return;
  }
  const state = transition(transitions, campaign.state, 'unschedule');
  await campaigns.update(tx, campaign_id, { state, launch_error: sentences(blocking) });
}
