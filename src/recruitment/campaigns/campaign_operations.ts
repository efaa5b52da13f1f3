/**
 * Campaigns are created, read, changed and deleted over REST.
 *
 * - A draft may lack inboxes, steps and prospects: the preflight says so. It is deleted as a draft alone; later it is stopped.
 * - `steps` of a PATCH replaces all steps; a step that names its `id` keeps it, one without is new. An id of another campaign is refused.
 * - A step that has an email, other than cancelled ones, is frozen with its place, its texts and its delay: 409 `invalid_state_transition` with the step
 *   as `param`.
 * - A change of a paused campaign that moves times takes the times of all open sequences; they are scheduled anew when it is resumed. Those that have begun
 *   keep their address and their inbox, also where the campaign no longer names it.
 */
import { isDeepStrictEqual } from 'node:util';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { transition } from '../../core/resource/states.ts';
import { id, oneLine, withDefaults } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id } from '../events/fields.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { type Campaign, type CampaignState, campaigns, lockCampaign, transitions } from './campaign.ts';
import { unschedule } from './reschedule.ts';
import { most_steps, type Step, StepBody, stepsOf } from './step.ts';
import { scheduleSchema } from './window.ts';

/** The fields of a campaign that a request can set. */
const settings = {
  name: oneLine(200).describe('The name of the campaign. Prospects never see it.'),
  inbox_ids: z
    .array(id('fin'))
    .max(100)
    .refine((ids) => new Set(ids).size === ids.length, 'must not name an inbox twice')
    .describe('Up to 100 inboxes that it sends from. Each prospect is written to from one of them.'),
  steps: z.array(StepBody).min(1).max(most_steps).describe(`1 to ${most_steps} emails, in their order.`),
  schedule: scheduleSchema,
  daily_new_limit: z
    .int()
    .min(1)
    .max(100_000)
    .nullable()
    .describe(
      'The most first emails in a day, in the time zone of the schedule (with `recipient`: of the brand). Null: no limit.',
    ),
  max_per_domain_day: z
    .int()
    .min(1)
    .max(1000)
    .describe(
      'The most emails of the campaign to one company (domain) in a day, in the same time zone. The limit does not apply to providers of free mailboxes, such as gmail.com.',
    ),
  bounce_pause_bps: z
    .int()
    .min(0)
    .max(10_000)
    .describe(
      'The service pauses the campaign if a larger share of its emails bounces, in basis points: 300 is 3 %. Emails are counted from the launch or the last pause, and at least 20 must be sent and 2 must bounce.',
    ),
  reply_wait_days: z
    .int()
    .min(0)
    .max(90)
    .describe('How many days a sequence waits for a reply after its last email, before it is completed.'),
  allow_risky: z
    .boolean()
    .describe('Whether it writes to disposable addresses, and to addresses at domains that accept every address.'),
  stop_for_company: z.boolean().describe('Whether a reply stops the sequences to others of the same company.'),
};

const defaults = {
  inbox_ids: [] as string[],
  schedule: { timezone: 'recipient', days: [1, 2, 3, 4, 5], from: '09:00', to: '17:00' },
  ...{ daily_new_limit: null, max_per_domain_day: 3, bounce_pause_bps: 300, reply_wait_days: 5 },
  ...{ allow_risky: false, stop_for_company: true },
};

const { name, ...optional } = settings;
/** Fields at whose change the emails that were not sent yet get new times. */
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

/** Another refusal than for other actions: what those advise, such as to pause it first, would not help. */
const notDeletable = (state: CampaignState): Problem =>
  new Problem(
    'invalid_state_transition',
    `The campaign is '${state}'. Only a draft can be deleted. Stop the campaign instead.`,
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

/**
 * "Steps already sent are frozen": a step that has an email, but not one that was stopped before it was sent, keeps its place, its texts and its delay.
 * @throws Problem invalid_state_transition, which names the step
 */
async function requireFrozenSteps(tx: Tx, { id, steps }: Campaign, changed: Step[]): Promise<void> {
  const sent = await tx.all<{ step_index: number }>(sql`
    select given.step_index from generate_series(0, ${steps.length - 1}::integer) as given (step_index)
    where exists (
      select from recruitment.message t
      where ${tenant(tx)} and t.campaign_id = ${id} and t.step_index = given.step_index and t.purpose = 'sequence'
        and t.state <> 'cancelled')
    order by given.step_index`);
  const frozen = sent.find(({ step_index }) => !isDeepStrictEqual(steps[step_index], changed[step_index]));
  if (!frozen) return;
  const { step_index } = frozen;
  throw new Problem(
    'invalid_state_transition',
    `Step ${step_index} ('${steps[step_index]?.id}') was sent already and cannot be changed, moved or removed. Send it as it is, with its id, at the same place.`,
    { param: `steps.${step_index}` },
  );
}
