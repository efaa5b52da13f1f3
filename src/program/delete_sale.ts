import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { takeBackAll } from './commissions/adjust.ts';
import { bindAnew, correctLaterStep } from './correct_sales.ts';
import type { Customer } from './customers/customer.ts';
import { event } from './events/event.ts';
import { as_before, correctTiersAfter } from './late_sale.ts';
import { takeOutOfPayouts } from './payouts/release.ts';
import { placeIn } from './sales/decision.ts';
import { deleteDisputes } from './sales/dispute.ts';
import { placeOfRow } from './sales/place.ts';
import { deleteRefunds } from './sales/refund.ts';
import { emitUpdated, followStatus, isAttributed, lockSale, type Sale, sales } from './sales/sale.ts';

export const deleteSaleOperations: Operation[] = [
  operation({
    name: 'sales.delete',
    method: 'DELETE',
    path: '/v1/sales/{id}',
    scope: 'sales:write',
    summary: 'Deletes a sale, for example when an import is rolled back.',
    doc: 'Unpaid commissions are deleted, and paid ones are clawed back. If the customer first paid by this sale, `converted_at` of the customer becomes the time of the earliest sale that is left, or null, and that sale is the first then: its coupon counts, and that of the deleted one does no more. It and later ones are corrected as if the deleted one had never been, but what is paid, approved or on hold stays. A customer whom nothing but that coupon brought stays with its partner. The ids of the charge, its refunds and its disputes can be used again.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const { sale, customer } = await lockSale(tx, params.id);
      await sales.update(tx, sale.id, { deleted_at: tx.now });
      if (customer) await moveConversion(tx, sale, customer);
      await followStatus(tx, customer, sale, { status: 'paid' });
      await deleteRefunds(tx, sale);
      await deleteDisputes(tx, sale);
      if (isAttributed(sale)) {
        tx.emit(event('sale.deleted', sale));
        await takeOutOfPayouts(tx, sql`t.sale_id = ${sale.id}`);
        await takeBackAll(tx, sale);
      }
      if (customer) await correctAfterDeletion(tx, sale, customer);
      return { id: sale.id, object: 'sale', deleted: true as const };
    },
  }),
];

/** The customer first paid by the earliest sale that is left; without any, reports and cohorts do not count the customer as one who paid. */
const moveConversion = (tx: Tx, { occurred_at }: Sale, { id: customer_id }: Customer) =>
  tx.all(sql`
    update program.customer t
    set updated_at = ${tx.now}::timestamptz, converted_at = (
      select s.occurred_at from program.sale s
      where s.organization_id = t.organization_id and s.customer_id = t.id and s.deleted_at is null
      order by s.occurred_at limit 1)
    where ${tenant(tx)} and t.id = ${customer_id} and t.converted_at = ${occurred_at}::timestamptz`);

/**
 * Makes the earliest sale that is left the first in place of a first one that is deleted, and corrects those after any where their place decides
 * otherwise now.
 */
async function correctAfterDeletion(tx: Tx, sale: Sale, customer: Customer): Promise<void> {
  const first = sale.is_first_sale ? await makeEarliestFirst(tx, customer) : undefined;
  const moved_from = sale.is_first_sale ? await bindAnew(tx, customer, first) : null;
  // The first one may be earlier than what is deleted: it came late, when that was settled.
  const after = first ? { at: first.occurred_at, charge: '' } : placeIn(sale);
  await correctLaterStep(tx, { customer_id: customer.id, after, ...as_before, moved_from });
  if (isAttributed(sale)) await correctTiersAfter(tx, sale);
}

/** @returns undefined where no sale is left */
async function makeEarliestFirst(tx: Tx, { id }: Customer): Promise<Sale | undefined> {
  const earliest = await tx.maybe<{ id: string }>(sql`
    select t.id from program.sale t
    where ${tenant(tx)} and t.customer_id = ${id} and t.deleted_at is null
    order by ${placeOfRow()}
    limit 1`);
  if (!earliest) return undefined;
  const first = await sales.update(tx, earliest.id, { is_first_sale: true });
  if (isAttributed(first)) emitUpdated(tx, first);
  return first;
}
