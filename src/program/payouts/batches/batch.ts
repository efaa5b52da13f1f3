import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { userOf } from '../../../core/access/api_key.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../../core/resource/deleted_marker.ts';
import { columnOf, type Filter } from '../../../core/resource/list_query.ts';
import { idParams, type Operation, operation, readOperations } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { timestampInput } from '../../../core/values/fields.ts';
import { newId } from '../../../core/values/id.ts';
import { Problem } from '../../../core/values/problem.ts';
import { program_id } from '../../events/fields.ts';
import { type Program, programs } from '../../programs/program.ts';
import { type Payout, payouts } from '../payout.ts';
import { type PayoutBatch, payoutBatches } from '../payout_batch.ts';
import { most_commissions } from '../payout_commissions.ts';
import { deletePayout } from '../release.ts';
import { BatchPreview, preview } from './preview.ts';

const day_ms = 86_400_000;
/** The number of payouts of a refused batch that a transaction deletes. */
const most_deleted = 500;

/** The stages that are statuses too. Their index is used where the statement names one: no payout is looked at. */
const waiting: Record<string, Sql> = {
  generating: sql`t.stage = 'generating'`,
  awaiting_approval: sql`t.stage = 'awaiting_approval'`,
};
const status: Filter = {
  schema: payoutBatches.fields.status.optional(),
  where: (value: string) => waiting[value] ?? sql`${columnOf(payoutBatches, 'status')} = ${value}`,
};

export const payoutBatchOperations: Operation[] = [
  ...readOperations({ resource: payoutBatches, within: programs, filters: { status } }),
  operation({
    name: 'payout_batches.create',
    method: 'POST',
    path: '/v1/payout_batches',
    scope: 'payouts:write',
    summary: 'Creates a batch of payouts from what is due.',
    doc: 'A worker creates the payouts: the response is 202, and `progress` of the batch shows how far it is. With `preview: true` the response is 200 with what the batch would contain, and nothing is created.',
    body: z.strictObject({
      program_id,
      cutoff: timestampInput
        .optional()
        .describe(
          'Includes commissions whose `mature_at` is before this time. Now or earlier; the default is the current time.',
        ),
      due_at: timestampInput
        .optional()
        .describe(
          "When the payouts are due: within a year from now. The default is the cut-off plus the program's payout term.",
        ),
      preview: z
        .boolean()
        .default(false)
        .describe('Whether to compute what the batch would contain, and create nothing.'),
    }),
    reply: payoutBatches.schema,
    status: 202,
    other_reply: { status: 200, reply: BatchPreview, when: ({ preview }) => preview },
    async run({ tx, caller, body, services }) {
      const program = await programs.get(tx, body.program_id, { param: 'program_id' });
      const cutoff = body.cutoff ?? tx.now;
      if (cutoff > tx.now) {
        throw new Problem('invalid_parameter', "'cutoff' must not be in the future.", { param: 'cutoff' });
      }
      const due_at = body.due_at ?? dueAt(program, cutoff);
      refuseFarDueAt(tx, due_at);
      if (body.preview) return preview(tx, services, program, { cutoff, due_at }) as never;
      return createBatch(tx, program, { cutoff, due_at, created_by_user_id: await userOf(tx, caller) });
    },
  }),
  operation({
    name: 'payout_batches.approve',
    method: 'POST',
    path: '/v1/payout_batches/{id}/approve',
    scope: 'payouts:send',
    summary: 'Approves a batch, so that its payouts can be sent.',
    doc: 'The key must belong to a user (`npx --no rail key create --user`), other than the one whose key created the batch. A batch that the schedule, or a key of no user, created can be approved by any user. No key can do both.',
    params: idParams,
    reply: payoutBatches.schema,
    errors: ['approval_not_allowed', 'invalid_state_transition'],
    async run({ tx, caller, params }) {
      const batch = await payoutBatches.get(tx, params.id, { lock: true });
      return approve(tx, batch, await userOf(tx, caller));
    },
  }),
  operation({
    name: 'payout_batches.delete',
    method: 'DELETE',
    path: '/v1/payout_batches/{id}',
    scope: 'payouts:write',
    summary: 'Deletes a batch and its pending payouts.',
    doc: 'Use it to refuse a batch. All of its payouts must be pending and never sent; their commissions are `due` again, and the next batch includes them. A large batch takes some seconds until its last payout is deleted.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['payout_locked'],
    async run({ tx, params }) {
      const batch = await payoutBatches.get(tx, params.id, { lock: true });
      await refuseSent(tx, batch);
      await payoutBatches.update(tx, batch.id, { deleted_at: tx.now });
      if ((await deletePayoutsOf(tx, batch.id, most_deleted, { at_least: 0 })) === most_deleted) {
        tx.enqueue('program/delete_payout_batch', {
          organization_id: tx.organization_id,
          request_id: tx.request_id,
          id: batch.id,
        });
      }
      return { id: batch.id, object: 'payout_batch', deleted: true as const };
    },
  }),
];

const most_days_ahead = 366;

/** A time far ahead is a mistake: the payouts would wait for it. @throws Problem invalid_parameter */
export function refuseFarDueAt({ now }: Pick<Tx, 'now'>, due_at: string): void {
  if (Date.parse(due_at) - Date.parse(now) <= most_days_ahead * day_ms) return;
  throw new Problem('invalid_parameter', `'due_at' must be within ${most_days_ahead} days.`, {
    param: 'due_at',
  });
}

const term_days = { net_15: 15, net_30: 30, net_60: 60 };

/** "`due_at` = cut-off + 15, 30 or 60 days." */
export const dueAt = ({ payout_term }: Pick<Program, 'payout_term'>, cutoff: string): string =>
  new Date(Date.parse(cutoff) + term_days[payout_term] * day_ms).toISOString();

export interface NewBatch {
  cutoff: string;
  due_at: string;
  created_by_user_id: string | null;
  /** The month's beginning, for a batch of the schedule. */
  scheduled_for?: string;
}

/** Creates a batch; a job creates its payouts. */
export async function createBatch(tx: Tx, program: Program, batch: NewBatch): Promise<PayoutBatch> {
  const created = (await payoutBatches.insert(tx, {
    ...{ id: newId('batch'), program_id: program.id, stage: 'generating', request_id: tx.request_id },
    ...{ approval_required: program.payout_approval_required, ...batch },
  })) as PayoutBatch;
  tx.enqueue('program/generate_payout_batch', {
    ...{ organization_id: tx.organization_id, request_id: tx.request_id, id: created.id },
  });
  return created;
}

/** @throws Problem approval_not_allowed, invalid_state_transition */
function approve(tx: Tx, batch: PayoutBatch, user_id: string | null): Promise<PayoutBatch> {
  if (user_id === null) {
    throw new Problem('approval_not_allowed', 'The key belongs to no user. Use a key that was created with --user.');
  }
  if (batch.status !== 'awaiting_approval') {
    throw new Problem(
      'invalid_state_transition',
      `The batch is ${batch.status}. Only a batch that is awaiting approval can be approved.`,
    );
  }
  if (user_id === batch.created_by_user_id) {
    throw new Problem('approval_not_allowed', 'The batch was created by the same user. Another user must approve it.');
  }
  return payoutBatches.update(tx, batch.id, { stage: 'ready', approved_by_user_id: user_id, approved_at: tx.now });
}

/** @throws Problem payout_locked */
async function refuseSent(tx: Tx, { id, status }: PayoutBatch): Promise<void> {
  if (status === 'generating') {
    throw new Problem('payout_locked', 'The batch is still being created. Try again when it is done.');
  }
  const sent = await tx.maybe<Payout>(sql`
    select ${payouts.columns}
    from ${payouts.from}
    where ${tenant(tx)} and ${payouts.alive} and t.batch_id = ${id} and (t.status <> 'pending' or t.attempt > 0 or t.in_progress is not null)
    order by t.id
    limit 1`);
  if (!sent) return;
  throw new Problem(
    'payout_locked',
    `The payout ${sent.id} of the batch is ${sent.status}. Delete its pending payouts one by one.`,
  );
}

/**
 * Deletes up to `most` pending payouts of a batch that is deleted, with `most_commissions` in all.
 * @param at_least how many are deleted however many commissions they have
 * @returns how many; `most` where there are more
 */
export async function deletePayoutsOf(tx: Tx, batch_id: string, most: number, { at_least = 1 } = {}): Promise<number> {
  const pending = await tx.all<Payout>(sql`
    select ${payouts.columns}
    from ${payouts.from}
    where ${tenant(tx)} and ${payouts.alive} and t.batch_id = ${batch_id} and t.status = 'pending'
    order by t.id
    limit ${most}
    for no key update of t`);
  let commissions = 0;
  for (const [at, payout] of pending.entries()) {
    commissions += payout.commission_count;
    if (at >= at_least && commissions > most_commissions) return most;
    await deletePayout(tx, payout);
  }
  return pending.length;
}
