import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { id, objectName, text } from '../../core/values/fields.ts';
import { notFound, Problem } from '../../core/values/problem.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { type HiddenReason, hidden_reasons, stage_names } from '../events/fields.ts';
import { assign, requireMember } from './assign.ts';
import { markInvited } from './invite.ts';
import { type Prospect, prospects, refuseSample } from './prospect.ts';
import { hide, listToSaveTo, requireSameBrand, saveProspects } from './save.ts';
import { moveStage } from './stage.ts';

export const most_ids = 500;
export const prospect_ids = z
  .array(id('fdi'))
  .min(1)
  .max(most_ids)
  .refine((ids) => new Set(ids).size === ids.length, 'must not name a prospect twice')
  .describe(`Up to ${most_ids} prospects.`);

export const Outcome = z.object({
  prospect_id: id('fdi').describe('The prospect.'),
  status: z
    .enum(['done', 'unchanged', 'failed'])
    .describe(
      '`done`: it was changed. `unchanged`: nothing had to be changed, and no event was emitted. `failed`: see `error`.',
    ),
  error: z
    .object({
      code: text.describe('The code of the error, as in the single operation.'),
      message: text.describe('What is wrong, and what to do.'),
    })
    .nullable()
    .describe('Null unless it failed.'),
});
type Outcome = z.infer<typeof Outcome>;

export const BulkResult = z.object({
  object: objectName('bulk_result'),
  data: z.array(Outcome).describe('The outcome for each prospect, in the order of the ids.'),
});

const Body = z.strictObject({
  action: z.enum(['save', 'hide', 'move', 'assign', 'invite']).describe('What to do with each of them.'),
  prospect_ids,
  list_id: id('fls').optional().describe('For `save`: a list. If not sent, prospects are saved to no list.'),
  reason: text
    .min(1)
    .max(500)
    .optional()
    .describe('For `hide`, required: a reason, as in the single operation. For `move`: why.'),
  stage: z.enum(stage_names).optional().describe('For `move`, required: the stage.'),
  member_id: id('tm').nullable().optional().describe('For `assign`, required: a team member. Null: nobody.'),
});
type Body = z.infer<typeof Body>;

/** The fields of each action besides the prospects. */
const taken: Record<Body['action'], { field: keyof Body; required: boolean }[]> = {
  save: [{ field: 'list_id', required: false }],
  hide: [{ field: 'reason', required: true }],
  move: [
    { field: 'stage', required: true },
    { field: 'reason', required: false },
  ],
  assign: [{ field: 'member_id', required: true }],
  invite: [],
};

/** Changes one prospect. @returns whether something changed @throws Problem before it has written anything */
type Change = (prospect: Prospect) => Promise<boolean>;

export const bulkOperations: Operation[] = [
  operation({
    name: 'prospects.bulk',
    title: 'Act on many prospects',
    method: 'POST',
    path: `${base_path}/prospects/bulk`,
    scope: 'prospects:write',
    summary: 'Saves, hides, moves, assigns or invites up to 500 prospects, each with an outcome of its own.',
    doc: 'The events are those of the single operations. Each unknown id fails by itself.',
    body: Body,
    reply: BulkResult,
    async run({ tx, body, caller }) {
      requireTaken(body);
      const change = await changeOf(tx, body, await actorOf(tx, caller));
      return { object: 'bulk_result' as const, data: await forEach(tx, body.prospect_ids, change) };
    },
  }),
];

/** @throws Problem missing_parameter, invalid_parameter */
function requireTaken(body: Body): void {
  const fields = taken[body.action];
  const missing = fields.find(({ field, required }) => required && body[field] === undefined);
  if (missing) {
    throw new Problem('missing_parameter', `'${missing.field}' is required for the action '${body.action}'.`, {
      param: missing.field,
    });
  }
  const other = (['list_id', 'reason', 'stage', 'member_id'] as const).find(
    (field) => body[field] !== undefined && !fields.some((one) => one.field === field),
  );
  if (other) {
    throw new Problem('invalid_parameter', `'${other}' is not allowed with the action '${body.action}'.`, {
      param: other,
    });
  }
  if (body.action === 'hide' && !hidden_reasons.includes(body.reason as HiddenReason)) {
    throw new Problem('invalid_parameter', `'reason' must be one of: ${hidden_reasons.join(', ')}.`, {
      param: 'reason',
    });
  }
}

async function changeOf(tx: Tx, body: Body, by: Actor): Promise<Change> {
  const { list_id = null, member_id = null } = body;
  switch (body.action) {
    case 'save':
      return saveTo(tx, list_id, by);
    case 'hide':
      return changes((prospect) => hide(tx, prospect, body.reason as HiddenReason, by));
    case 'move':
      return changes((prospect) =>
        moveStage(tx, prospect, { to: body.stage as Prospect['stage'], reason: 'manual', by, words: body.reason }),
      );
    case 'assign':
      await requireMember(tx, member_id);
      return changes((prospect) => assign(tx, prospect, member_id, by));
    case 'invite':
      return changes((prospect) => markInvited(tx, prospect, by));
  }
}

/** A change that returns the same record has changed nothing. */
const changes =
  (change: (prospect: Prospect) => Promise<Prospect>): Change =>
  async (prospect) =>
    (await change(prospect)) !== prospect;

/** @throws Problem resource_not_found */
async function saveTo(tx: Tx, list_id: string | null, by: Actor): Promise<Change> {
  const list = list_id === null ? null : await listToSaveTo(tx, list_id);
  return async (prospect) => {
    if (list) requireSameBrand(prospect, list);
    return (await saveProspects(tx, [prospect], list_id, by)).length > 0;
  };
}

async function forEach(tx: Tx, ids: string[], change: Change): Promise<Outcome[]> {
  const found = new Map((await prospects.lockMany(tx, ids)).map((prospect) => [prospect.id, prospect]));
  const outcomes: Outcome[] = [];
  for (const prospect_id of ids) outcomes.push(await outcomeOf(prospect_id, found.get(prospect_id), change));
  return outcomes;
}

async function outcomeOf(prospect_id: string, prospect: Prospect | undefined, change: Change): Promise<Outcome> {
  try {
    refuseSample(prospect_id, 'prospect_ids');
    if (!prospect) throw notFound('prospect', prospect_id, 'prospect_ids');
    return { prospect_id, status: (await change(prospect)) ? 'done' : 'unchanged', error: null };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { prospect_id, status: 'failed', error: { code: error.code, message: error.message } };
  }
}
