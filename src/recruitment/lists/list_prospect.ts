import { z } from 'zod';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { id } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { BulkResult, prospect_ids } from '../prospects/bulk.ts';
import { prospects, refuseSample } from '../prospects/prospect.ts';
import { saveProspects, unsave } from '../prospects/save.ts';
import { lists } from './list.ts';

/** Adds prospects to a list and removes them. A list's prospects are read by `list_id`: see the filters of prospects. */
export const listProspectOperations: Operation[] = [
  operation({
    name: 'lists.add_prospects',
    title: 'Add prospects to a list',
    method: 'POST',
    path: `${base_path}/lists/{id}/prospects`,
    scope: 'lists:write',
    summary: 'Adds up to 500 prospects to a list, which saves them.',
    doc: 'All or none: a prospect that does not exist, or is of another brand, answers 404. Emits `affiliate.saved` for each that was not in the list.',
    params: idParams,
    body: z.strictObject({ prospect_ids }),
    reply: BulkResult,
    errors: ['resource_not_found', 'sample_prospect'],
    async run({ tx, params, body, caller }) {
      const list = await lists.get(tx, params.id, { lock: 'share' });
      for (const prospect_id of body.prospect_ids) refuseSample(prospect_id, 'prospect_ids');
      const rows = await prospects.lockMany(tx, body.prospect_ids);
      const of_brand = rows.filter(({ brand_id }) => brand_id === list.brand_id);
      const missing = body.prospect_ids.find((prospect_id) => !of_brand.some((row) => row.id === prospect_id));
      if (missing !== undefined) throw notFound('prospect', missing, 'prospect_ids');
      const in_order = body.prospect_ids.map((prospect_id) => rows.find((row) => row.id === prospect_id));
      const added = await saveProspects(tx, in_order as typeof rows, list.id, await actorOf(tx, caller));
      const data = body.prospect_ids.map((prospect_id) => {
        const status = added.includes(prospect_id) ? ('done' as const) : ('unchanged' as const);
        return { prospect_id, status, error: null };
      });
      return { object: 'bulk_result' as const, data };
    },
  }),
  operation({
    name: 'lists.remove_prospect',
    title: 'Remove a prospect from a list',
    method: 'DELETE',
    path: `${base_path}/lists/{id}/prospects/{prospect_id}`,
    scope: 'lists:write',
    summary: 'Removes a prospect from a list. It stays saved.',
    params: idParams.extend({ prospect_id: id('fdi').min(1).describe('A prospect in the list.') }),
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, caller }) {
      const list = await lists.get(tx, params.id);
      const prospect = await prospects.get(tx, params.prospect_id, { param: 'prospect_id', lock: true });
      const removed = await unsave(tx, prospect.id, list.id, await actorOf(tx, caller));
      if (!removed) throw notInList(prospect.id);
      return prospects.get(tx, prospect.id);
    },
  }),
];

const notInList = (prospect_id: string): Problem =>
  new Problem('resource_not_found', `The list has no prospect with the id '${prospect_id}'.`, { param: 'prospect_id' });
