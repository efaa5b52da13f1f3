import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { never_absent } from '../../../core/values/absent.ts';
import { externalId, pastTimestamp, text } from '../../../core/values/fields.ts';
import { minorNotNegative } from '../../../core/values/money.ts';
import { Problem } from '../../../core/values/problem.ts';
import { confirmNotPaid, refuseOpenAttempt } from '../last_attempt.ts';
import { atOnce, lockApproved, lockReady, type Payout, payouts } from '../payout.ts';
import { payoutBatches } from '../payout_batch.ts';
import { statusAfter } from '../payout_state.ts';
import { rail_names } from '../rails/rail.ts';
import { changed, markFailed, refusePaidTwice } from './change.ts';
import { type Marking, markable } from './mark_batch.ts';

const payment = {
  external_id: externalId
    .optional()
    .describe('The id of the payment, such as a transaction id.')
    .register(never_absent),
  paid_at: pastTimestamp.optional().describe('When it was paid. The default is the current time.'),
};

/** Operations on payouts by hand, but for sending them. */
export const payoutChangeOperations: Operation[] = [
  operation({
    name: 'payouts.mark_paid',
    method: 'POST',
    path: '/v1/payouts/{id}/mark_paid',
    scope: 'payouts:send',
    title: 'Mark a payout as paid',
    summary: 'Records that a payout was paid outside of Rail.',
    doc: 'For a pending or failed payout, and for one in processing by `bank_transfer`, `wire` or `crypto`. The payout and its commissions become `paid`. A payout that was sent in test mode ends without paying anybody: its commissions are due again. Other methods report by themselves whether a payout in processing is paid. A payout of more than 2,000 commissions is paid by a worker after the response: until then `in_progress` is `mark_paid`.',
    params: idParams,
    body: z.strictObject(payment).default({}),
    reply: payouts.schema,
    errors: ['payout_locked'],
    async run({ tx, params, body }) {
      const payout = await lockApproved(tx, params.id, (payout) => statusAfter(payout, 'mark_paid'));
      await refuseOpenAttempt(tx, payout);
      const { external_id = null, paid_at = tx.now } = body;
      return changed(tx, payout, { action: 'mark_paid', external_id, paid_at });
    },
  }),
  operation({
    name: 'payouts.mark_returned',
    method: 'POST',
    path: '/v1/payouts/{id}/mark_returned',
    scope: 'payouts:send',
    title: 'Mark a payout as returned',
    summary: 'Records that a payment came back.',
    doc: 'For a payout that was paid by `bank_transfer`, `wire` or `crypto`, or was marked as paid. It becomes `failed` with `returned`, and its commissions are `due` again and stay in it: retry it, or delete it. A payout that was paid twice is refused while its clawback is open: if one payment came back, void the clawback. A payout of more than 2,000 commissions is changed by a worker after the response: until then `in_progress` is `mark_returned`. Other methods report by themselves what comes back.',
    params: idParams,
    body: z
      .strictObject({
        reason: text
          .max(1000)
          .regex(/\S/, 'must not be blank')
          .optional()
          .describe('Why it came back, in words. It becomes the `error_message` of the payout.'),
        returned_at: pastTimestamp.optional().describe('When it came back. The default is the current time.'),
        fee_minor: minorNotNegative
          .optional()
          .describe('What was kept of the amount, in minor units of the currency: where less came back than was sent.'),
      })
      .default({}),
    reply: payouts.schema,
    errors: ['payout_locked'],
    async run({ tx, params, body }) {
      const payout = await lockApproved(tx, params.id, (payout) => statusAfter(payout, 'mark_returned'));
      await refuseReportedReturn(tx, payout);
      await refusePaidTwice(tx, payout);
      const { reason = 'The payment was returned.', returned_at = tx.now, fee_minor = null } = body;
      if (fee_minor !== null && fee_minor > payout.amount_minor)
        throw new Problem(
          'invalid_parameter',
          `'fee_minor' must not exceed the amount of the payout, ${payout.amount_minor}.`,
          {
            param: 'fee_minor',
          },
        );
      const sent_at = payout.submitted_at ?? payout.created_at;
      // Banks give days.
      if (returned_at.slice(0, 10) < sent_at.slice(0, 10))
        throw new Problem('invalid_parameter', `'returned_at' must not be before the payout was sent (${sent_at}).`, {
          param: 'returned_at',
        });
      return changed(tx, payout, { action: 'mark_returned', reason, returned_at, fee_minor });
    },
  }),
  operation({
    name: 'payouts.mark_failed',
    method: 'POST',
    path: '/v1/payouts/{id}/mark_failed',
    scope: 'payouts:send',
    title: 'Mark a payout as failed',
    summary: 'Records that a payment was not made.',
    doc: 'For a payout in processing by `bank_transfer`, `wire` or `crypto` that the bank did not carry out, as when its report rejects the payment without a definite reason. It becomes `failed` with `provider_rejected`: retry it, or delete it. Ask the bank first: a payment that was made after all, and is retried, is paid twice. Other methods report by themselves.',
    params: idParams,
    body: z
      .strictObject({
        reason: text
          .max(1000)
          .regex(/\S/, 'must not be blank')
          .optional()
          .describe('Why it was not made, in words. It becomes the `error_message` of the payout.'),
      })
      .default({}),
    reply: payouts.schema,
    errors: ['payout_locked'],
    async run({ tx, params, body: { reason = 'The payment was not made.' } }) {
      return markFailed(tx, await lockApproved(tx, params.id, (payout) => statusAfter(payout, 'mark_failed')), reason);
    },
  }),
  operation({
    name: 'payout_batches.mark_paid',
    method: 'POST',
    path: '/v1/payout_batches/{id}/mark_paid',
    scope: 'payouts:send',
    title: 'Mark a payout batch as paid',
    summary: 'Records that the payouts of a batch were paid outside of Rail.',
    doc: 'For banks that report a file as a whole, and for payments by hand. Without `statuses`, it marks the payouts in processing by `bank_transfer`, `wire` or `crypto`, as `POST /v1/payouts/{id}/mark_paid` does for one; other methods report by themselves. A worker marks them: each emits `payout.paid`, and `GET /v1/payouts?batch_id=…` shows which are `paid`. Payouts that failed or were sent again since the request are left as they are. If no payout can be marked, the response is 409.',
    params: idParams,
    body: z
      .strictObject({
        ...payment,
        statuses: z
          .array(z.enum(['pending', 'processing', 'failed']))
          .min(1)
          .default(['processing'])
          .describe('Payouts of these statuses are marked. The default is `["processing"]`.'),
        file: z
          .int()
          .min(1)
          .max(2_147_483_647)
          .optional()
          .describe('The number of a file of the batch: only the payouts that were last sent in it are marked.'),
      })
      .prefault({}),
    reply: payoutBatches.schema,
    status: 202,
    errors: ['payout_locked'],
    async run({ tx, params, body }) {
      const batch = await lockReady(tx, params.id);
      const { external_id = null, paid_at = tx.now, file = null, statuses } = body;
      const marking: Marking = { statuses, file, external_id, paid_at, requested_at: tx.now };
      await refuseWithoutMarkable(tx, batch.id, marking);
      const { organization_id, request_id } = tx;
      tx.enqueue('program/mark_payout_batch', { organization_id, request_id, id: batch.id, marking });
      return batch;
    },
  }),
  operation({
    name: 'payouts.delete',
    method: 'DELETE',
    path: '/v1/payouts/{id}',
    scope: 'payouts:write',
    summary: 'Deletes a pending or failed payout.',
    doc: 'Its commissions are `due` again, and the next batch includes them. A failed payout is deleted once its rail has confirmed that nothing was paid: until then the response is 409 `payout_locked` with `Retry-After`. A payout of more than 2,000 commissions takes some seconds after the response until it is gone.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['payout_locked'],
    async run({ tx, params }) {
      const payout = await atOnce(tx, () => payouts.get(tx, params.id, { lock: true }));
      statusAfter(payout, 'delete');
      await refuseOpenAttempt(tx, payout);
      await confirmNotPaid(tx, payout);
      await changed(tx, payout, { action: 'delete' });
      return { id: payout.id, object: 'payout', deleted: true as const };
    },
  }),
];

/** @throws Problem invalid_parameter where there is no such file, payout_locked */
async function refuseWithoutMarkable(tx: Tx, batch_id: string, marking: Marking): Promise<void> {
  const { file, statuses } = marking;
  const is_file = sql`${tenant(tx)} and t.batch_id = ${batch_id} and t.number = ${file}`;
  if (file !== null && !(await tx.maybe(sql`select from program.payout_file t where ${is_file}`)))
    throw new Problem('invalid_parameter', `The batch has no file ${file}. Its \`files\` lists those that it has.`, {
      param: 'file',
    });
  if (await tx.maybe(sql`select from ${payouts.from} where ${tenant(tx)} and ${markable(batch_id, marking)} limit 1`))
    return;
  throw new Problem(
    'payout_locked',
    `The batch has no payout that can be marked as paid and is ${statuses.join(' or ')}${file === null ? '' : ` in file ${file}`}. Those in processing by paypal, wise or stripe are reported by the provider.`,
  );
}

/** @throws Problem payout_locked where a provider paid it, which reports returns */
async function refuseReportedReturn(tx: Tx, { id }: Payout): Promise<void> {
  const paid = await tx.maybe<{ rail: string }>(sql`
    select t.rail from program.payout_attempt t
    where ${tenant(tx)} and t.payout_id = ${id} and t.status = 'paid' and t.settled and t.rail = any(${[...rail_names]})`);
  if (paid)
    throw new Problem('payout_locked', `The payout was paid by ${paid.rail}, which will report if it comes back.`);
}
