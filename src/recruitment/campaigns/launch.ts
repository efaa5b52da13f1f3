/**
 * Previews, checks and launches campaigns. A launch runs the preflight itself, and so does the tick that starts a scheduled one: what blocks it then is
 * `launch_error`, and it is a draft again.
 */
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import type { Services } from '../../core/resource/services.ts';
import { transition } from '../../core/resource/states.ts';
import { id, timestampInput } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { refuseSample } from '../prospects/prospect.ts';
import { type Campaign, campaigns, lockCampaign, transitions } from './campaign.ts';
import type { Blocking } from './finding.ts';
import { Preflight, preflight } from './preflight.ts';
import { Preview, preview } from './preview.ts';
import { requestSchedule } from './reschedule.ts';
import { step_index, variant } from './step.ts';

const most_ahead_ms = 366 * 86_400_000;

export const launchOperations: Operation[] = [
  operation({
    name: 'campaigns.preview',
    title: 'Preview an email of a campaign',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/preview`,
    scope: 'campaigns:read',
    further_scopes: ['prospects:read'],
    summary: 'Shows the exact email that a prospect would get. Nothing is sent.',
    params: idParams,
    body: z.strictObject({
      prospect_id: id('fdi').describe('A prospect of the brand, in the campaign or not.'),
      step_index,
      variant: variant
        .optional()
        .describe(
          "The text: 0 is the step's own, 1 its first variant. Default: the one that the prospect gets, or 0 if it is not in the campaign.",
        ),
    }),
    reply: Preview,
    errors: ['sample_prospect', 'invalid_state_transition'],
    async run({ tx, params, body, services }) {
      refuseSample(body.prospect_id, 'prospect_id');
      return preview(tx, (await campaigns.get(tx, params.id)) as Campaign, body, services);
    },
  }),
  operation({
    name: 'campaigns.preflight',
    title: 'Check a campaign before its launch',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/preflight`,
    scope: 'campaigns:read',
    summary: 'Checks whether a campaign can be launched, and every prospect whose first email was not sent yet.',
    doc: 'Nothing is changed. `blocking` lists what prevents the launch, and `warnings` what does not. Templates are rendered for every prospect; if that takes more than 5 seconds, `partial` is true and `rendered` says for how many.',
    params: idParams,
    reply: Preflight,
    run: async ({ tx, params, services }) => preflight(tx, (await campaigns.get(tx, params.id)) as Campaign, services),
  }),
  operation({
    name: 'campaigns.launch',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/launch`,
    scope: 'campaigns:write',
    summary: 'Launches a campaign that is a draft or scheduled, now or later.',
    doc: 'If `preflight` finds something that blocks the launch, the response is 409 `preflight_failed`. Emits `campaign.launched` at the start. With `start_at` the campaign is `scheduled`; if something blocks it then, it is a draft again, and `launch_error` says why. Launch a scheduled campaign again to change its time.',
    params: idParams,
    body: z
      .strictObject({
        start_at: timestampInput
          .nullable()
          .optional()
          .describe('When it starts, at most a year ahead. Default: now. A time in the past and null also mean now.'),
      })
      .default({}),
    reply: campaigns.schema,
    errors: ['invalid_state_transition', 'preflight_failed'],
    async run({ tx, params, body: { start_at = null }, services }) {
      requireSoon(start_at, tx.now);
      return launch(tx, await lockCampaign(tx, params.id), start_at, services);
    },
  }),
];

/** @throws Problem invalid_parameter */
function requireSoon(start_at: string | null, now: string): void {
  if (start_at === null || Date.parse(start_at) - Date.parse(now) <= most_ahead_ms) return;
  throw new Problem('invalid_parameter', "'start_at' must be within a year.", { param: 'start_at' });
}

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
