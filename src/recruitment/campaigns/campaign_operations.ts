import { isDeepStrictEqual } from 'node:util';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { transition } from '../../core/resource/states.ts';
import { withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id } from '../events/fields.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { type Campaign, campaigns, lockCampaign } from './campaign.ts';
import { type CampaignState, transitions } from './campaign_states.ts';
import { requireFrozenSteps } from './frozen_steps.ts';
import { defaults, settings } from './settings.ts';
import { stepsOf } from './step.ts';
import { unschedule } from './unschedule.ts';

const { name, ...optional } = settings;
/** When one of these changes, the emails that were not sent yet get new times. */
const scheduled_by = [
  'inbox_ids',
  'steps',
  'schedule',
  'daily_new_limit',
  'max_per_domain_day',
  'reply_wait_days',
  'allow_risky',
] as const;

export const campaignOperations: Operation[] = [
  ...readOperations({
    resource: campaigns,
    within: brands,
    by: ['state'],
    filters: {
      inbox_id: {
        schema: z.string().min(1).optional().describe('Returns only campaigns that send from this inbox.'),
        where: (inbox_id: string) => sql`t.inbox_ids @> array[${inbox_id}]`,
      },
    },
  }),
  operation({
    name: 'campaigns.create',
    method: 'POST',
    path: `${base_path}/campaigns`,
    scope: 'campaigns:write',
    summary: 'Creates a campaign, as a draft.',
    doc: 'Nothing is sent until you launch it. Templates are checked: a variable, filter or tag that does not exist is refused.',
    body: z.strictObject({ brand_id, name, ...withDefaults(optional, defaults) }),
    reply: campaigns.schema,
    status: 201,
    async run({ tx, body: { steps = [], ...body } }) {
      await brands.get(tx, body.brand_id, { param: 'brand_id', lock: 'share' });
      await requireInboxes(tx, body.inbox_ids as string[]);
      return (await campaigns.insert(tx, {
        ...body,
        ...json({ steps: await stepsOf(steps) }),
        id: newId('fca'),
      })) as Campaign;
    },
  }),
  operation({
    name: 'campaigns.update',
    method: 'PATCH',
    path: `${base_path}/campaigns/{id}`,
    scope: 'campaigns:write',
    summary: 'Updates a campaign that is a draft or paused.',
    doc: '`steps` replaces all steps. Send the `id` of a step to keep it. In a paused campaign, steps that were sent already are frozen, and emails that were not sent yet get new times when it is resumed. Sequences that have begun keep their inbox.',
    params: idParams,
    body: z.strictObject(settings).partial(),
    reply: campaigns.schema,
    errors: ['invalid_state_transition', 'missing_parameter'],
    async run({ tx, params, body: { steps: given, ...body } }) {
      const before = await lockCampaign(tx, params.id);
      transition(transitions, before.state, 'edit');
      await requireInboxes(tx, body.inbox_ids ?? []);
      const steps = given === undefined ? before.steps : await stepsOf(given, before.steps);
      await requireFrozenSteps(tx, before, steps);
      const changes = { ...body, steps };
      if (scheduled_by.some((field) => field in changes && !isDeepStrictEqual(changes[field], before[field]))) {
        await unschedule(tx, params.id);
      }
      return campaigns.update(tx, params.id, { ...body, ...json({ steps }) });
    },
  }),
  operation({
    name: 'campaigns.delete',
    method: 'DELETE',
    path: `${base_path}/campaigns/{id}`,
    scope: 'campaigns:write',
    summary: 'Deletes a campaign that is a draft.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { state } = await lockCampaign(tx, params.id);
      if (state !== 'draft') throw notDeletable(state);
      await campaigns.deleteOutright(tx, params.id);
      return { id: params.id, object: 'campaign', deleted: true as const };
    },
  }),
];

/** What the other refusals of the state advise, such as to pause it first, would not help. */
const notDeletable = (state: CampaignState): Problem =>
  new Problem(
    'invalid_state_transition',
    `The campaign is '${state}': it can be deleted while it is a draft, and stopped after that.`,
  );

/** An empty list of steps is JSON too. */
const json = ({ steps }: { steps: object[] }) => ({ steps: JSON.stringify(steps) });

/** @throws Problem resource_not_found */
async function requireInboxes(tx: Tx, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const known = new Set((await inboxes.byIds(tx, ids)).map(({ id }) => id));
  const missing = ids.find((id) => !known.has(id));
  if (missing !== undefined) throw notFound('inbox', missing, 'inbox_ids');
}
