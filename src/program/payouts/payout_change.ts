import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { pastTimestamp, text } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { by_hand, updateAttempt } from './attempt.ts';
import { confirmNotPaid, refuseOpenAttempt } from './last_attempt.ts';
import { type Payout, payouts } from './payout.ts';
import { type PayoutBatch, payoutBatches } from './payout_batch.ts';
import { statusAfter } from './payout_state.ts';
import { deletePayout } from './release.ts';
import { settlePaid } from './settle.ts';

/** What is done with payouts by hand, but for sending them. */
export const payoutChangeOperations: Operation[] = [
  operation({
    name: 'payouts.mark_paid',
    method: 'POST',
    path: '/v1/payouts/{id}/mark_paid',
    scope: 'payouts:send',
    summary: 'Records that a payout was paid outside of Rail.',
    doc: 'For a pending or failed payout, and for one in processing by `bank_transfer`, `wire` or `crypto`. The payout and its commissions become `paid`. A payout that was sent in test mode ends without paying anybody: its commissions are due again. Other methods report by themselves whether a payout in processing is paid.',
    params: idParams,
    body: z
      .strictObject({
        external_id: text
          .max(255)
          .regex(/\S/, 'must not be blank')
          .optional()
          .describe('The id of the payment, such as a transaction id.'),
        paid_at: pastTimestamp.optional().describe('When it was paid. The default is the current time.'),
      })
      .default({}),
    reply: payouts.schema,
    errors: ['payout_locked'],
    async run({ tx, params, body }) {
      const payout = await lockApproved(tx, params.id, (payout) => statusAfter(payout, 'mark_paid'));
      await refuseOpenAttempt(tx, payout);
      if (payout.status === 'processing') await markAttemptPaid(tx, payout);
      return settlePaid(tx, payout, 'mark_paid', {
        external_id: body.external_id ?? payout.external_id,
        paid_at: body.paid_at ?? tx.now,
        fee_minor: null,
      });
    },
  }),
  operation({
    name: 'payouts.delete',
    method: 'DELETE',
    path: '/v1/payouts/{id}',
    scope: 'payouts:write',
    summary: 'Deletes a pending or failed payout.',
    doc: 'Its commissions are `due` again, and the next batch includes them. A failed payout is deleted once its rail has confirmed that nothing was paid: until then the response is 409 `payout_locked` with `Retry-After`.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['payout_locked'],
    async run({ tx, params }) {
      const payout = await payouts.get(tx, params.id, { lock: true });
      statusAfter(payout, 'delete');
      await refuseOpenAttempt(tx, payout);
      await confirmNotPaid(tx, payout);
      await deletePayout(tx, payout);
      return { id: payout.id, object: 'payout', deleted: true as const };
    },
  }),
];

/** The transfer in the bank's file is what was paid: the bank's report of it changes nothing any more. */
const markAttemptPaid = (tx: Tx, { id, attempt }: Payout) =>
  updateAttempt(tx, `${id}-${attempt}`, { status: 'paid', settled: true, last_answer: by_hand, ended_at: tx.now });

/**
 * Locks a payout whose money is to move. Its batch is locked before: it must be ready, and is not deleted meanwhile.
 * @param judge throws where the payout's own status does not allow it, which is told first
 * @throws Problem payout_locked
 */
export async function lockApproved(tx: Tx, payout_id: string, judge: (payout: Payout) => unknown): Promise<Payout> {
  const { batch_id } = await payouts.get(tx, payout_id);
  const batch = await payoutBatches.find(tx, sql`${tenant(tx)} and t.id = ${batch_id}`, lockOf('share'));
  const payout = await payouts.get(tx, payout_id, { lock: true });
  judge(payout);
  if (!batch) throw new Problem('payout_locked', `The batch ${batch_id} is deleted, and so will be its payouts.`);
  requireReady(batch);
  return payout;
}

/** @throws Problem payout_locked */
function requireReady({ id: batch_id, status }: PayoutBatch): void {
  if (status === 'awaiting_approval')
    throw new Problem('payout_locked', `The batch ${batch_id} is not approved yet. Approve it first.`);
  if (status === 'generating')
    throw new Problem(
      'payout_locked',
      `The batch ${batch_id} is still being created. Try again when its status is ready.`,
    );
}
