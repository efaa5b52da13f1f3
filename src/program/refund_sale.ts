import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { textDetail, withWarnings } from '../core/values/detail.ts';
import { Problem } from '../core/values/problem.ts';
import { adjustCommissions } from './commissions/adjust.ts';
import { customers } from './customers/customer.ts';
import { event } from './events/event.ts';
import { takeOutOfPayouts } from './payouts/release.ts';
import { assessLater } from './programs/assess_later.ts';
import { NewRefund, recordRefund, refuseImpossibleTime, refuseRepeatedRefund } from './sales/refund.ts';
import { type AttributedSale, isAttributed, lockSale, type Sale, saleStatus, sales } from './sales/sale.ts';

/** Records a refund, and its effects: the sale's status, the customer's, and the commissions. */
export const refundOperations: Operation[] = [
  operation({
    name: 'sales.refund',
    method: 'POST',
    path: '/v1/sales/{id}/refund',
    scope: 'sales:write',
    summary: 'Refunds a sale, in whole or in part.',
    doc: '`external_refund_id` or an idempotency key makes it safe to repeat. Unpaid commissions are reduced in proportion, also an amount that was edited by hand, or voided; for a paid commission, a clawback is created for the difference. A full refund sets the status of the customer to `refunded`.',
    params: idParams,
    body: NewRefund.default({}),
    details: { reason: textDetail(1000) },
    reply: withWarnings(sales.record, 'SaleRefunded', 'The sale after the refund.'),
    errors: ['refund_exceeds_sale', 'sale_already_refunded', 'resource_already_exists'],
    async run({ tx, params, body }) {
      const { sale } = await lockSale(tx, params.id);
      return refundSale(tx, sale, body);
    },
  }),
];

/** @throws Problem refund_exceeds_sale, sale_already_refunded, resource_already_exists */
async function refundSale(tx: Tx, before: Sale, refund: NewRefund): Promise<Sale> {
  await refuseRepeatedRefund(tx, before, refund.external_refund_id);
  const amount_minor = amountOf(refund, before);
  refuseImpossibleTime(tx, before, refund.refunded_at);
  const { id, refunded_at } = await recordRefund(tx, before, { ...refund, amount_minor });
  const refunded_minor = before.refunded_minor + amount_minor;
  const status = saleStatus(before.amount_minor, refunded_minor);
  const after = await sales.update(tx, before.id, {
    refunded_minor,
    status,
    refunded_at: before.refunded_at !== null && before.refunded_at > refunded_at ? before.refunded_at : refunded_at,
  });
  if (status === 'refunded' && after.customer_id !== null)
    await customers.update(tx, after.customer_id, { status: 'refunded' });
  if (!isAttributed(after)) return after;
  emitRefund(tx, after, { amount_minor, refunded_at });
  await takeOutOfPayouts(tx, sql`t.sale_id = ${after.id}`);
  await adjustCommissions(tx, after, 'sale_refunded', id);
  assessLater(tx, 'sale', after.id);
  return after;
}

/**
 * Returns the amount of the refund: the one sent, or all that is left.
 * @throws Problem refund_exceeds_sale, sale_already_refunded
 */
function amountOf(refund: NewRefund, sale: Sale): number {
  const left = sale.amount_minor - sale.refunded_minor;
  if (sale.amount_minor === 0) {
    throw new Problem('refund_exceeds_sale', 'The amount of the sale is 0, so there is nothing to refund.');
  }
  if (left === 0) throw new Problem('sale_already_refunded', 'The sale is already fully refunded.');
  const { amount_minor = left } = refund;
  if (amount_minor <= left) return amount_minor;
  throw new Problem('refund_exceeds_sale', `At most ${left} minor units of the sale can be refunded.`, {
    param: 'amount_minor',
  });
}

/** @param refund one refund, or all so far of a sale that is attributed only now */
export function emitRefund(
  tx: Tx,
  sale: AttributedSale,
  { amount_minor, refunded_at }: { amount_minor: number; refunded_at: string },
): void {
  tx.emit(event('sale.refunded', sale, { amount_minor, refunded_at }));
}
