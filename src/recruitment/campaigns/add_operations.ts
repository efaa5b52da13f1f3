/**
 * Adds prospects to a campaign: up to 500 in the request, each with an outcome of its own; a list by a job that shows its progress. A sample refuses the whole
 * request (409).
 */
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { transition } from '../../core/resource/states.ts';
import { id } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { lists } from '../lists/list.ts';
import { holdSuppressions } from '../prospects/barred_site.ts';
import { BulkResult, most_ids, type Outcome, prospect_ids } from '../prospects/bulk.ts';
import { refuseSample } from '../prospects/prospect.ts';
import { addList, addProspects, campaignAdditions, refusals } from './add_prospects.ts';
import { type Campaign, campaigns, transitions } from './campaign.ts';
import { requestSchedule } from './reschedule.ts';

const Added = BulkResult.meta({ description: 'With `prospect_ids`: the outcome for each prospect.' });

const codes = Object.entries(refusals)
  .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
  .join(' ');

export const addOperations: Operation[] = [
  operation({
    name: 'campaigns.add_prospects',
    title: 'Add prospects to a campaign',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/prospects`,
    scope: 'campaigns:write',
    summary: `Adds up to ${most_ids} prospects, or a list, to a campaign.`,
    doc: `Allowed in every state except stopped and finished. Each prospect gets one sequence. Prospects are added or refused one by one; the codes of the refusals are: ${codes} A list is added by a job: \`GET /recruitment/v1/campaign_additions/{id}\` shows its progress.`,
    params: idParams,
    body: z.strictObject({
      prospect_ids: prospect_ids.optional(),
      list_id: id('fls').optional().describe('A list of the brand, instead of `prospect_ids`.'),
    }),
    reply: campaignAdditions.schema,
    status: 202,
    other_reply: { status: 200, reply: Added, when: (body) => body.prospect_ids !== undefined },
    errors: ['missing_parameter', 'resource_not_found', 'sample_prospect', 'invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      requireOne(body);
      for (const each of body.prospect_ids ?? []) refuseSample(each, 'prospect_ids');
      await holdSuppressions(tx);
      const campaign = (await campaigns.get(tx, params.id, { lock: 'share' })) as Campaign;
      transition(transitions, campaign.state, 'add');
      const by = await actorOf(tx, caller);
      if (body.list_id !== undefined) return addListOf(tx, campaign, body.list_id, by);
      return (await addEach(tx, campaign, body.prospect_ids as string[], by)) as never;
    },
  }),
  ...readOperations({ resource: campaignAdditions, by: ['campaign_id', 'state'] }),
];

/** @throws Problem missing_parameter, invalid_parameter */
function requireOne({ prospect_ids: ids, list_id }: { prospect_ids?: unknown; list_id?: unknown }): void {
  if (ids === undefined && list_id === undefined) {
    throw new Problem('missing_parameter', "'prospect_ids' or 'list_id' is required.", { param: 'prospect_ids' });
  }
  if (ids !== undefined && list_id !== undefined) {
    throw new Problem('invalid_parameter', "'list_id' is not allowed with 'prospect_ids'. Send one of them.", {
      param: 'list_id',
    });
  }
}

/** @throws Problem resource_not_found */
async function addListOf(tx: Tx, campaign: Campaign, list_id: string, by: Actor) {
  const list = await lists.get(tx, list_id, { param: 'list_id', lock: 'share' });
  if (list.brand_id !== campaign.brand_id) {
    throw new Problem('resource_not_found', `No list with the id '${list_id}' in the brand of the campaign.`, {
      param: 'list_id',
    });
  }
  return addList(tx, campaign.id, list_id, by);
}

async function addEach(tx: Tx, campaign: Campaign, ids: string[], by: Actor): Promise<z.infer<typeof BulkResult>> {
  const refused = await addProspects(tx, campaign, ids, by);
  if (campaign.state === 'sending' && refused.size < ids.length) requestSchedule(tx, campaign.id);
  const data = ids.map((prospect_id): z.infer<typeof Outcome> => {
    const code = refused.get(prospect_id);
    if (code === undefined) return { prospect_id, status: 'done', error: null };
    return { prospect_id, status: 'failed', error: { code, message: refusals[code] } };
  });
  return { object: 'bulk_result', data };
}
