import { z } from 'zod';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { id, timestampInput } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { base_path } from '../events/base_path.ts';
import { refuseSample } from '../prospects/prospect.ts';
import { type Campaign, campaigns, lockCampaign } from './campaign.ts';
import { launch } from './launch.ts';
import { Preflight, preflight } from './preflight.ts';
import { Preview, preview } from './preview.ts';
import { most_steps, most_variants } from './step.ts';

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
      step_index: z
        .int()
        .min(0)
        .max(most_steps - 1)
        .default(0)
        .describe('The step: 0 is the first.'),
      variant: z
        .int()
        .min(0)
        .max(most_variants)
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
