import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { id } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { type HiddenReason, hidden_reasons } from '../events/fields.ts';
import { isSample } from '../samples/sample.ts';
import { hideSample, saveSample } from '../samples/sample_action.ts';
import { stopSequences } from '../sequences/stop.ts';
import { recordActivity } from './activity.ts';
import { type Prospect, prospects, refuseSample, requireLiveKey } from './prospect.ts';

/**
 * Saves prospects of one brand, whose rows the caller has locked, to a list or to none. Tells it of each that was not there yet.
 * @param list_id of a list of their brand
 * @returns the ids of those whose event was emitted
 */
export async function saveProspects(tx: Tx, rows: Prospect[], list_id: string | null, by: Actor): Promise<string[]> {
  const added = list_id === null ? rows.filter(({ saved }) => !saved) : await addToList(tx, rows, list_id);
  const ids = added.map(({ id: prospect_id }) => prospect_id);
  if (ids.length === 0) return [];
  await tx.all(sql`
    update recruitment.prospect t set saved = true, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids}) and not t.saved`);
  for (const { id: prospect_id, channel, key } of added) {
    tx.emit(event('affiliate.saved', tx.organization_id, { prospect_id, channel, key, list_id }));
  }
  recordActivity(
    tx,
    'saved',
    by,
    ids.map((prospect_id) => ({ prospect_id, data: { list_id } })),
  );
  return ids;
}

async function addToList(tx: Tx, rows: Prospect[], list_id: string): Promise<Prospect[]> {
  const added = await tx.all<{ prospect_id: string }>(sql`
    insert into recruitment.list_prospect as t (organization_id, list_id, prospect_id, created_at)
    select ${tx.organization_id}, ${list_id}, given.id, ${tx.now}::timestamptz
    from unnest(${rows.map(({ id: prospect_id }) => prospect_id)}::text[]) as given (id)
    on conflict do nothing
    returning t.prospect_id`);
  return rows.filter((row) => added.some(({ prospect_id }) => prospect_id === row.id));
}

/** Takes a prospect out of a list, or out of all of them and of those that are saved. @returns whether it was in it */
export async function unsave(tx: Tx, prospect_id: string, list_id: string | null, by: Actor): Promise<boolean> {
  const removed = await tx.all(sql`
    delete from recruitment.list_prospect t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and (${list_id}::text is null or t.list_id = ${list_id})
    returning 1`);
  const changed =
    list_id !== null
      ? []
      : await tx.all(sql`
          update recruitment.prospect t set saved = false, updated_at = ${tx.now}::timestamptz
          where ${tenant(tx)} and t.id = ${prospect_id} and t.saved
          returning 1`);
  if (removed.length + changed.length === 0) return false;
  recordActivity(tx, 'unsaved', by, [{ prospect_id, data: { list_id } }]);
  return true;
}

/** A list, which is not deleted before the transaction ends. @throws Problem resource_not_found */
export async function listToSaveTo(tx: Tx, list_id: string): Promise<{ id: string; brand_id: string }> {
  const list = await tx.maybe<{ id: string; brand_id: string }>(sql`
    select t.id, t.brand_id from recruitment.list t where ${tenant(tx)} and t.id = ${list_id} for key share of t`);
  if (!list) throw notFound('list', list_id, 'list_id');
  return list;
}

/** @throws Problem resource_not_found where the list is of another brand */
export function requireSameBrand(prospect: Prospect, list: { id: string; brand_id: string }): void {
  if (list.brand_id !== prospect.brand_id) {
    throw new Problem('resource_not_found', `No list with the id '${list.id}' in the brand of the prospect.`, {
      param: 'list_id',
    });
  }
}

/** Hides a prospect, whose row the caller has locked. */
export async function hide(tx: Tx, prospect: Prospect, reason: HiddenReason, by: Actor): Promise<Prospect> {
  if (prospect.hidden_reason === reason) return prospect;
  tx.emit(event('affiliate.hidden', tx.organization_id, { prospect_id: prospect.id, reason }));
  await stopSequences(tx, [prospect.id]);
  recordActivity(tx, 'hidden', by, [{ prospect_id: prospect.id, data: { reason } }]);
  return prospects.update(tx, prospect.id, { hidden: true, hidden_reason: reason });
}

const list_id = id('fls');
const List = z.strictObject({ list_id: list_id.optional().describe('A list (`fls_…`) of the same brand.') });

export const saveOperations: Operation[] = [
  operation({
    name: 'prospects.save',
    method: 'POST',
    path: `${base_path}/prospects/{id}/save`,
    scope: 'prospects:write',
    summary: 'Saves a prospect, to a list or to none.',
    doc: 'A prospect in a list is saved. Emits `affiliate.saved`, unless the prospect is saved already, or in this list already. A sample can be saved to no list.',
    params: idParams,
    body: List.default({}),
    reply: prospects.schema,
    test_keys: true,
    errors: ['test_key_not_allowed', 'sample_prospect'],
    async run({ tx, params, body, caller }) {
      if (isSample(params.id)) {
        if (body.list_id !== undefined) refuseSample(params.id, 'id');
        return saveSample(tx, params.id);
      }
      requireLiveKey(caller);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      if (body.list_id !== undefined) requireSameBrand(prospect, await listToSaveTo(tx, body.list_id));
      await saveProspects(tx, [prospect], body.list_id ?? null, await actorOf(tx, caller));
      return prospects.get(tx, params.id);
    },
  }),
  operation({
    name: 'prospects.unsave',
    method: 'POST',
    path: `${base_path}/prospects/{id}/unsave`,
    scope: 'prospects:write',
    summary: 'Removes a prospect from a list, or from the saved prospects.',
    doc: 'With `list_id` it is removed from this list and stays saved. Without one it is removed from every list and is no longer saved.',
    params: idParams,
    body: List.default({}),
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, body, caller }) {
      const prospect = await prospects.get(tx, params.id, { lock: true });
      if (body.list_id !== undefined) requireSameBrand(prospect, await listToSaveTo(tx, body.list_id));
      await unsave(tx, params.id, body.list_id ?? null, await actorOf(tx, caller));
      return prospects.get(tx, params.id);
    },
  }),
  operation({
    name: 'prospects.hide',
    method: 'POST',
    path: `${base_path}/prospects/{id}/hide`,
    scope: 'prospects:write',
    summary: 'Hides a prospect.',
    doc: 'Emits `affiliate.hidden`, unless the prospect is hidden for this reason already.',
    params: idParams,
    body: z.strictObject({ reason: z.enum(hidden_reasons).describe('Why.') }),
    reply: prospects.schema,
    test_keys: true,
    errors: ['test_key_not_allowed'],
    async run({ tx, params, body, caller }) {
      if (isSample(params.id)) return hideSample(tx, params.id, body.reason);
      requireLiveKey(caller);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      return hide(tx, prospect, body.reason, await actorOf(tx, caller));
    },
  }),
  operation({
    name: 'prospects.unhide',
    method: 'POST',
    path: `${base_path}/prospects/{id}/unhide`,
    scope: 'prospects:write',
    summary: 'Shows a hidden prospect again.',
    params: idParams,
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, caller }) {
      const prospect = await prospects.get(tx, params.id, { lock: true });
      if (!prospect.hidden) return prospect;
      recordActivity(tx, 'unhidden', await actorOf(tx, caller), [{ prospect_id: prospect.id }]);
      return prospects.update(tx, prospect.id, { hidden: false, hidden_reason: null });
    },
  }),
];
