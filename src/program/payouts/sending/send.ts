import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { Problem } from '../../../core/values/problem.ts';
import { programs } from '../../programs/program.ts';
import { held_texts } from '../eligibility.ts';
import { refuseOpenAttempt } from '../last_attempt.ts';
import { lockApproved, lockReady, type Payout, payouts } from '../payout.ts';
import { type PayoutBatch, payoutBatches } from '../payout_batch.ts';
import { statusAfter } from '../payout_state.ts';
import { refuseWithoutCredentials } from './credentials_missing.ts';
import { type Held, sendPayouts } from './prepare.ts';
import { failedBefore, to_send } from './send_many.ts';

const by_method =
  'With `paypal`, `wise` or `stripe` a worker asks the provider to pay, and the payout becomes `paid` or `failed` by what the provider reports. With `bank_transfer`, `wire` or `crypto` the payout goes into a file, which the export of its batch returns; it becomes `paid` or `failed` by the bank’s status report, or is marked as paid.';

export const sendOperations: Operation[] = [
  operation({
    name: 'payouts.send',
    method: 'POST',
    path: '/v1/payouts/{id}/send',
    scope: 'payouts:send',
    summary: 'Sends a pending payout.',
    doc: `${by_method} The partner is checked again: a payout that cannot be sent, or is below a minimum that was raised since, stays pending, with 409 \`payout_locked\` and \`payout.not_eligible\`. It can be sent before it is due.`,
    params: idParams,
    reply: payouts.schema,
    errors: ['payout_locked'],
    run: ({ tx, params, services }) => sendOne(tx, services, params.id, 'send'),
  }),
  operation({
    name: 'payouts.retry',
    method: 'POST',
    path: '/v1/payouts/{id}/retry',
    scope: 'payouts:send',
    summary: 'Sends a failed payout again.',
    doc: 'Starts another attempt with an idempotency key of its own, to the payout method that the partner has now. It pays the full amount of the payout, also if sales in it were refunded since the first attempt: clawbacks in the next payout take that back. To pay less now, delete the payout and create a batch.',
    params: idParams,
    reply: payouts.schema,
    errors: ['payout_locked'],
    run: ({ tx, params, services }) => sendOne(tx, services, params.id, 'retry'),
  }),
  operation({
    name: 'payout_batches.send',
    method: 'POST',
    path: '/v1/payout_batches/{id}/send',
    scope: 'payouts:send',
    summary: 'Sends the pending payouts of a batch.',
    doc: `${by_method} A worker sends them: those of one file method go into one file. What cannot be sent stays pending, with \`payout.not_eligible\`; \`not_sent\` of the batch counts it by reason. If the program has no credentials for any of the methods, nothing is sent and the response is 409.`,
    params: idParams,
    reply: payoutBatches.schema,
    status: 202,
    errors: ['payout_locked'],
    async run({ tx, params }) {
      const batch = await payoutBatches.get(tx, params.id, { lock: 'share' });
      if (batch.status !== 'ready') {
        throw new Problem(
          'payout_locked',
          `The batch is ${batch.status}. Only the payouts of a batch that is ready can be sent.`,
        );
      }
      await refuseWithoutCredentials(tx, batch, to_send);
      const { organization_id, request_id } = tx;
      tx.enqueue('program/send_payout_batch', { organization_id, request_id, id: batch.id });
      return batch;
    },
  }),
  operation({
    name: 'payout_batches.retry',
    method: 'POST',
    path: '/v1/payout_batches/{id}/retry',
    scope: 'payouts:send',
    summary: 'Sends the failed payouts of a batch again.',
    doc: 'Each starts another attempt, as by `POST /v1/payouts/{id}/retry`: to the payout method that the partner has now, and of the full amount. A worker sends them: those of one file method go into one new file. What cannot be sent stays failed; `not_sent` of the batch counts it by reason. A payout that was already sent again since the request is not sent a second time. If no payout of the batch has failed, the response is 409.',
    params: idParams,
    reply: payoutBatches.schema,
    status: 202,
    errors: ['payout_locked'],
    async run({ tx, params }) {
      const batch = await lockReady(tx, params.id);
      const failed = failedBefore(tx.now);
      await refuseWithoutAny(tx, batch, failed);
      await refuseWithoutCredentials(tx, batch, failed);
      const { organization_id, request_id, now: retry_requested_at } = tx;
      tx.enqueue('program/send_payout_batch', { organization_id, request_id, id: batch.id, retry_requested_at });
      return batch;
    },
  }),
];

/** @throws Problem payout_locked */
async function refuseWithoutAny(tx: Tx, { id: batch_id }: PayoutBatch, which: Sql): Promise<void> {
  const any = await tx.maybe(sql`
    select from ${payouts.from} where ${tenant(tx)} and ${payouts.alive} and t.batch_id = ${batch_id} and ${which} limit 1`);
  if (any) return;
  throw new Problem(
    'payout_locked',
    'No payout of the batch has failed, so there is nothing to retry. Payouts that are pending are sent with POST /v1/payout_batches/{id}/send.',
  );
}

/** @throws Problem payout_locked, which keeps what was told of a payout that cannot be sent */
async function sendOne(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  payout_id: string,
  action: 'send' | 'retry',
): Promise<Payout> {
  const payout = await lockApproved(tx, payout_id, (payout) => statusAfter(payout, action));
  await refuseOpenAttempt(tx, payout);
  const program = await programs.get(tx, payout.program_id);
  const [held] = await sendPayouts(tx, services, program, [payout], action);
  if (held) throw cannotSend(held);
  return payouts.get(tx, payout_id);
}

const cannotSend = ({ reason }: Held): Problem =>
  new Problem('payout_locked', `The payout cannot be sent (${reason}). ${held_texts[reason]}`, { keep_effects: true });
