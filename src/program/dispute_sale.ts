import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { transition } from '../core/resource/states.ts';
import { textDetail, withWarnings } from '../core/values/detail.ts';
import { pastTimestamp } from '../core/values/fields.ts';
import { newId } from '../core/values/id.ts';
import { followDisputes } from './commissions/disputed.ts';
import { type Customer, customers } from './customers/customer.ts';
import { takeOutOfPayouts } from './payouts/release.ts';
import { raiseFlag } from './programs/raise_flag.ts';
import { refundDisputed, reverseRefund } from './refund_sale.ts';
import {
  type Dispute,
  dispute_states,
  disputedAmount,
  disputes,
  NewDispute,
  outcomes,
  refuseRepeatedDispute,
} from './sales/dispute.ts';
import { refunds } from './sales/refund.ts';
import { isAttributed, lockSale, type Sale } from './sales/sale.ts';
import { refuseToldDispute } from './sales/told.ts';

/** Records a dispute, and its effects: commissions on hold while it is open, then a refund or their release. */
export const disputeOperations: Operation[] = [
  operation({
    name: 'disputes.create',
    title: 'Open a dispute',
    method: 'POST',
    path: '/v1/disputes',
    scope: 'sales:write',
    summary: 'Records that a customer disputes a charge at their bank.',
    doc: 'The unpaid commissions of the sale are put on hold, whole also where a part of the amount is disputed, and a risk flag of the kind `dispute` is raised. What is paid or in a payout that was sent is not changed: if the dispute is lost, a clawback takes it back. `external_dispute_id` or an idempotency key makes it safe to repeat. A dispute without an id is taken for one of the same sale and amount that a connected billing processor tells within 7 days, and answers 409 if that came first.',
    body: NewDispute,
    details: { reason: textDetail(1000) },
    reply: withWarnings(disputes.record, 'DisputeOpened', 'The dispute.'),
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body }) {
      const { sale } = await lockSale(tx, body.sale_id, { param: 'sale_id' });
      const { external_dispute_id, opened_at: at = tx.now } = body;
      if (external_dispute_id === undefined)
        await refuseToldDispute(tx, sale, { amount_minor: disputedAmount(body, sale), at });
      return openDispute(tx, sale, body);
    },
  }),
  operation({
    name: 'disputes.close',
    method: 'POST',
    path: '/v1/disputes/{id}/close',
    scope: 'sales:write',
    summary: "Records the bank's decision of a dispute.",
    doc: '`won`: the commissions that it held are released. `lost`: the disputed amount, as far as it is not refunded, is refunded as of `closed_at`, with the reason `dispute_lost` and the `external_dispute_id`, and what is left of the commissions is released. The rest of it is refunded once another refund of the sale is reversed. A lost dispute can still be won: its refund is reversed.',
    params: idParams,
    body: z.strictObject({
      outcome: z
        .enum(outcomes)
        .describe('The new status: `won` if you keep the money, `lost` if the customer gets it.'),
      closed_at: pastTimestamp.optional().describe('When the dispute was decided. The default is the current time.'),
    }),
    reply: disputes.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, body }) {
      const { sale_id } = await disputes.get(tx, params.id);
      const { sale, customer } = await lockSale(tx, sale_id);
      const dispute = await disputes.get(tx, params.id, { lock: true });
      const status = transition(dispute_states, dispute.status, body.outcome);
      // First: what its refund gives back is not taken by it again.
      const closed = await disputes.update(tx, dispute.id, { status, closed_at: body.closed_at ?? tx.now });
      await (status === 'lost' ? lose : win)(tx, closed, sale, customer);
      await followDisputes(tx, sale.id);
      return disputes.get(tx, dispute.id);
    },
  }),
];

/** @param sale locked */
async function openDispute(tx: Tx, sale: Sale, fields: z.infer<typeof NewDispute>): Promise<Dispute> {
  await refuseRepeatedDispute(tx, sale, fields.external_dispute_id);
  const { id: sale_id, program_id, currency } = sale;
  const amount_minor = disputedAmount(fields, sale);
  const row = { opened_at: tx.now, ...fields, id: newId('dsp'), program_id, amount_minor, status: 'open' };
  const dispute = await disputes.insert(tx, row, sql`on conflict do nothing`);
  if (!dispute) {
    await refuseRepeatedDispute(tx, sale, fields.external_dispute_id);
    // The sale of the other one was deleted meanwhile.
    return openDispute(tx, sale, fields);
  }
  if (!isAttributed(sale)) return dispute;
  await takeOutOfPayouts(tx, sql`t.sale_id = ${sale_id}`);
  await followDisputes(tx, sale.id);
  const evidence = { dispute_id: dispute.id, sale_id, amount_minor, currency };
  // A flag about a customer who was erased holds no evidence: it is about the partner alone.
  const customer = await customers.find(tx, sql`${tenant(tx)} and t.id = ${sale.customer_id}`);
  await raiseFlag(tx, {
    program_id,
    partner_id: sale.partner_id,
    customer_id: customer?.id ?? null,
    kind: 'dispute',
    severity: 'high',
    evidence,
  });
  return dispute;
}

/** Refunds what is disputed and is left of the sale, unless the refund was recorded before by the id of the dispute. */
async function lose(tx: Tx, dispute: Dispute, sale: Sale, customer: Customer | undefined): Promise<void> {
  const { external_dispute_id, program_id } = dispute;
  const recorded =
    external_dispute_id === null
      ? undefined
      : await refunds.find(
          tx,
          sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_refund_id = ${external_dispute_id}`,
        );
  if (recorded) await disputes.update(tx, dispute.id, { refund_id: recorded.id });
  await refundDisputed(tx, sale, customer);
}

/** Reverses the refund of a dispute that was lost, unless that is reversed already. */
async function win(tx: Tx, { refund_id }: Dispute, sale: Sale, customer: Customer | undefined): Promise<void> {
  if (refund_id === null) return;
  const refund = await refunds.get(tx, refund_id, { lock: true });
  if (refund.reversed_at === null) await reverseRefund(tx, sale, customer, refund, 'dispute_won');
}
