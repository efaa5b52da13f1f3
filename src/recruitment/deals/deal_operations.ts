import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { changesOf } from '../../core/postgres/write.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { transition } from '../../core/resource/states.ts';
import { id, requireState } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { alreadyExists, notFound, Problem } from '../../core/values/problem.ts';
import { linkedProgram } from '../../program/activation.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import type { Stage } from '../events/fields.ts';
import { type ActivityKind, recordActivity } from '../prospects/activity.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { moveStage, type StageReason } from '../prospects/stage.ts';
import { stopSequences } from '../sequences/stop.ts';
import { type Deal, deals } from './deal.ts';
import { addVersion } from './deal_version.ts';
import { deal_states } from './states.ts';
import { ChangedTerms, GivenTerms, requireConsistent } from './terms.ts';

const agree_body = z.strictObject({
  version: z
    .int()
    .min(1)
    .max(2_147_483_647)
    .optional()
    .describe('The version that is agreed. The default is the last version.'),
  agreed_by: z
    .enum(['member', 'prospect'])
    .default('member')
    .describe('Who says that it is agreed. `member`: the team. `prospect`: the prospect.'),
});

export const dealOperations: Operation[] = [
  ...readOperations({ resource: deals, by: ['prospect_id', 'program_id', 'brand_id', 'status', 'partner_id'] }),
  operation({
    name: 'deals.create',
    method: 'POST',
    path: `${base_path}/deals`,
    scope: 'deals:write',
    summary: 'Creates a deal with a prospect, as a draft.',
    doc: 'Emits `affiliate.stage_changed`: the stage of the prospect is `negotiating` from then on, unless it is `agreed` or `active`. A prospect has at most one open deal in each program; a deal is open unless it is active or cancelled. A second one is refused with 409 `resource_already_exists`, and `existing` holds the first.',
    body: z.strictObject({
      prospect_id: id('fdi').describe('The prospect.'),
      program_id: id('prg').describe('The program that the prospect is to join.'),
      terms: GivenTerms,
    }),
    reply: deals.schema,
    status: 201,
    errors: ['sample_prospect', 'resource_already_exists', 'currency_mismatch'],
    async run({ tx, body: { prospect_id, program_id, terms }, caller }) {
      const prospect = await prospects.get(tx, prospect_id, { param: 'prospect_id', lock: true });
      await linkedProgram(tx, program_id);
      await requireConsistent(tx, program_id, terms);
      await refuseSecond(tx, prospect_id, program_id);
      const by = await actorOf(tx, caller);
      const deal_id = newId('fdl');
      await deals.insert(tx, { id: deal_id, brand_id: prospect.brand_id, prospect_id, program_id });
      await addVersion(tx, deal_id, 1, terms, by);
      await prospects.update(tx, prospect_id, { deal_id });
      record(tx, 'deal_created', { id: deal_id, prospect_id }, by);
      await advance(tx, prospect, { to: 'negotiating', reason: 'deal_created', by }, ['agreed', 'active']);
      return deals.get(tx, deal_id);
    },
  }),
  operation({
    name: 'deals.update',
    title: 'Change the terms of a deal',
    method: 'PATCH',
    path: `${base_path}/deals/{id}`,
    scope: 'deals:write',
    summary: 'Changes the terms of a draft: adds the next version of them.',
    doc: 'Earlier versions never change. If the deal is not a draft, the response is 409 `invalid_state_transition`. Terms that equal those of the last version add no version.',
    params: idParams,
    body: z.strictObject({ terms: ChangedTerms }).partial(),
    reply: deals.schema,
    errors: ['invalid_state_transition', 'currency_mismatch'],
    async run({ tx, params, body, caller }) {
      const { deal } = await locked(tx, params.id);
      transition(deal_states, deal.status, 'revise');
      const terms = { ...deal.terms, ...defined(body.terms ?? {}) };
      if (changesOf(deal.terms, terms).length === 0) return deal;
      await requireConsistent(tx, deal.program_id, terms);
      await addVersion(tx, deal.id, deal.version + 1, terms, await actorOf(tx, caller));
      await deals.update(tx, deal.id, { version: deal.version + 1 });
      return deals.get(tx, deal.id);
    },
  }),
  operation({
    name: 'deals.agree',
    method: 'POST',
    path: `${base_path}/deals/{id}/agree`,
    scope: 'deals:write',
    summary: 'Agrees to a version of the terms, which is frozen from then on.',
    doc: 'Emits `deal.agreed`, then `affiliate.stage_changed`: the stage of the prospect is `agreed` from then on, unless it is `active`. If this version is already agreed, nothing changes.',
    params: idParams,
    body: agree_body.prefault({}),
    reply: deals.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      const { deal, prospect } = await locked(tx, params.id);
      return agree(tx, deal, prospect, body, await actorOf(tx, caller));
    },
  }),
  operation({
    name: 'deals.cancel',
    method: 'POST',
    path: `${base_path}/deals/{id}/cancel`,
    scope: 'deals:write',
    summary: 'Cancels a draft or an agreed deal.',
    doc: 'The stage of the prospect is unchanged. A deal that is being activated, or is active, cannot be cancelled: 409.',
    params: idParams,
    reply: deals.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, caller }) {
      const { deal, prospect } = await locked(tx, params.id);
      const status = transition(deal_states, deal.status, 'cancel');
      if (deal.status === status) return deal;
      await deals.update(tx, deal.id, { status, cancelled_at: tx.now });
      await prospects.update(tx, prospect.id, { deal_id: await currentDeal(tx, prospect) });
      record(tx, 'deal_cancelled', deal, await actorOf(tx, caller));
      return deals.get(tx, deal.id);
    },
  }),
  operation({
    name: 'deals.reopen',
    method: 'POST',
    path: `${base_path}/deals/{id}/reopen`,
    scope: 'deals:write',
    summary: 'Makes an agreed or cancelled deal a draft again.',
    doc: 'Its terms can be changed, and must be agreed again. The stage of the prospect is unchanged.',
    params: idParams,
    reply: deals.schema,
    errors: ['invalid_state_transition', 'resource_already_exists'],
    async run({ tx, params, caller }) {
      const { deal, prospect } = await locked(tx, params.id);
      const status = transition(deal_states, deal.status, 'reopen');
      if (deal.status === status) return deal;
      if (deal.status === 'cancelled') await refuseSecond(tx, deal.prospect_id, deal.program_id);
      const agreement = { agreed_version: null, agreed_digest: null, agreed_by: null, agreed_by_user_id: null };
      await deals.update(tx, deal.id, { ...agreement, agreed_at: null, status, cancelled_at: null, last_error: null });
      await prospects.update(tx, prospect.id, { deal_id: deal.id });
      record(tx, 'deal_reopened', deal, await actorOf(tx, caller));
      return deals.get(tx, deal.id);
    },
  }),
];

interface Locked {
  deal: Deal;
  prospect: Prospect;
}

/** The deal and its prospect, both locked. @throws Problem resource_not_found */
export async function locked(tx: Tx, deal_id: string): Promise<Locked> {
  const found = await lockedUnlessErased(tx, deal_id);
  if (!found) throw notFound('deal', deal_id, 'id');
  return found;
}

/**
 * The deal and its prospect, both locked; undefined where the deal does not exist, or is erased meanwhile. The prospect comes first: whoever
 * waits for another change waits for the prospect, so that the deal is read afterwards, with the version that the change added.
 */
export async function lockedUnlessErased(tx: Tx, deal_id: string): Promise<Locked | undefined> {
  const where = sql`${tenant(tx)} and t.id = ${deal_id} and ${deals.alive}`;
  const seen = await deals.find(tx, where);
  if (!seen) return undefined;
  const prospect = await prospects.find(
    tx,
    sql`${tenant(tx)} and t.id = ${seen.prospect_id}`,
    sql`for no key update of t`,
  );
  const deal = await deals.find(tx, where, lockOf(true));
  return prospect && deal && { deal, prospect };
}

async function refuseSecond(tx: Tx, prospect_id: string, program_id: string): Promise<void> {
  const existing = await deals.find(
    tx,
    sql`${tenant(tx)} and t.prospect_id = ${prospect_id} and t.program_id = ${program_id} and t.status in ('draft', 'agreed', 'activating')`,
  );
  if (!existing) return;
  throw alreadyExists(
    'prospect_id',
    `The prospect has an open deal in this program, '${existing.id}'. Change its terms, or cancel it first.`,
    existing,
  );
}

async function agree(
  tx: Tx,
  deal: Deal,
  prospect: Prospect,
  { version = deal.agreed_version ?? deal.version, agreed_by }: z.infer<typeof agree_body>,
  by: Actor,
): Promise<Deal> {
  const status = transition(deal_states, deal.status, 'agree');
  if (deal.status === status) {
    requireState(deal.agreed_version === version, `Version ${deal.agreed_version} is agreed. Reopen the deal first.`);
    return deal;
  }
  const digest = await digestOf(tx, deal, version);
  const { id: deal_id, prospect_id } = deal;
  const agreed_by_user_id = by.user_id;
  tx.emit(
    event('deal.agreed', tx.organization_id, {
      ...{ deal_id, prospect_id, version },
      agreed_by: agreed_by === 'member' ? agreed_by_user_id : null,
    }),
  );
  const agreement = { agreed_version: version, agreed_digest: digest, agreed_by, agreed_by_user_id, agreed_at: tx.now };
  await deals.update(tx, deal_id, { ...agreement, status, last_error: null });
  record(tx, 'deal_agreed', deal, by, { version, agreed_by });
  await advance(tx, prospect, { to: 'agreed', reason: 'deal_agreed', by }, ['active']);
  return deals.get(tx, deal_id);
}

/**
 * Returns the digest of a version's terms.
 * @throws Problem invalid_parameter for a version that does not exist
 */
async function digestOf(tx: Tx, deal: Deal, version: number): Promise<string> {
  const known = await tx.maybe<{ digest: string }>(sql`
    select t.digest from recruitment.deal_version t
    where ${tenant(tx)} and t.deal_id = ${deal.id} and t.version = ${version}`);
  if (known) return known.digest;
  throw new Problem('invalid_parameter', `'version' must be one of the deal's versions, 1 to ${deal.version}.`, {
    param: 'version',
  });
}

/** Moves a prospect forward, and never out of these stages. Outreach to them ends in any case. */
async function advance(
  tx: Tx,
  prospect: Prospect,
  move: { to: Stage; reason: StageReason; by: Actor },
  never_from: Stage[],
): Promise<void> {
  if (never_from.includes(prospect.stage)) await stopSequences(tx, [prospect.id]);
  else await moveStage(tx, prospect, move);
}

/** Records in the activity of the prospect what happened with a deal. */
export const record = (
  tx: Tx,
  kind: ActivityKind,
  { id: deal_id, prospect_id }: Pick<Deal, 'id' | 'prospect_id'>,
  by: Actor,
  data: object = {},
): void => recordActivity(tx, kind, by, [{ prospect_id, data: { deal_id, ...data } }]);

/** The prospect's current deal: the one that is open, else the last active one. */
async function currentDeal(tx: Tx, { id: prospect_id }: Prospect): Promise<string | null> {
  const current = await tx.maybe<{ id: string }>(sql`
    select t.id from recruitment.deal t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id} and t.status <> 'cancelled'
    order by t.status = 'active', t.id desc
    limit 1`);
  return current?.id ?? null;
}

const defined = <Given extends object>(given: Given) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [Field in keyof Given]: Exclude<Given[Field], undefined>;
  };
