import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { textDetail, withWarnings } from '../core/values/detail.ts';
import { requireState, text } from '../core/values/fields.ts';
import { Problem } from '../core/values/problem.ts';
import { adjustCommissions, hasEverEarned } from './commissions/adjust.ts';
import { followDisputes } from './commissions/disputed.ts';
import type { Customer } from './customers/customer.ts';
import { earnSale, readDecision } from './earn_sale.ts';
import { event } from './events/event.ts';
import { correctSalesAfterRefund } from './late_sale.ts';
import { takeOutOfPayouts } from './payouts/release.ts';
import { assessLater } from './programs/assess_later.ts';
import { programs } from './programs/program.ts';
import { releaseWaiting } from './programs/release_later.ts';
import { type Dispute, disputes } from './sales/dispute.ts';
import {
  NewRefund,
  type Refund,
  recordRefund,
  refunds,
  refuseImpossibleTime,
  refuseRepeatedRefund,
  retryRefunds,
} from './sales/refund.ts';
import {
  type AttributedSale,
  emitUpdated,
  followStatus,
  isAttributed,
  lockSale,
  type Sale,
  saleStatus,
  sales,
} from './sales/sale.ts';
import { refuseToldRefund } from './sales/told.ts';

/** Records a refund or its reversal, and the effects: the sale's status, the customer's, and the commissions. */
export const refundOperations: Operation[] = [
  operation({
    name: 'sales.refund',
    method: 'POST',
    path: '/v1/sales/{id}/refund',
    scope: 'sales:write',
    summary: 'Refunds a sale, in whole or in part.',
    doc: '`external_refund_id` or an idempotency key makes it safe to repeat. Where a connected billing processor tells its refunds too, send its id: a refund without an id is taken for one of the same sale and amount that the processor tells within 7 days, and answers 409 if that came first. Unpaid commissions are reduced in proportion, also an amount that was edited by hand, or voided; for a paid commission, a clawback is created for the difference. A full refund sets the status of the customer to `refunded`.',
    params: idParams,
    body: NewRefund.default({}),
    details: { reason: textDetail(1000) },
    reply: withWarnings(sales.record, 'SaleRefunded', 'The sale after the refund.'),
    errors: ['refund_exceeds_sale', 'sale_already_refunded', 'resource_already_exists'],
    async run({ tx, params, body }) {
      const { sale, customer } = await lockSale(tx, params.id);
      const { external_refund_id } = body;
      if (external_refund_id === undefined) await refuseToldRefund(tx, sale, body);
      const refunded = await refundSale(tx, sale, customer, body);
      // The processor may have told before that it failed.
      if (external_refund_id !== undefined)
        await releaseWaiting(tx, sale.program_id, sql`t.waiting_for = ${external_refund_id}`);
      return refunded.sale;
    },
  }),
  operation({
    name: 'refunds.reverse',
    method: 'POST',
    path: '/v1/refunds/{id}/reverse',
    scope: 'sales:write',
    summary: 'Reverses a refund that failed, or whose money came back.',
    doc: 'The sale counts the refund no more, and its commissions are what they would be without it: an unpaid one grows again, one that was voided is earned again, and what a clawback took back is paid as a bonus. Its `external_refund_id` stays used.',
    params: idParams,
    body: z.strictObject({ reason: text.max(1000).optional().describe('The reason, for your records.') }).prefault({}),
    details: { reason: textDetail(1000) },
    reply: withWarnings(refunds.record, 'RefundReversed', 'The refund after its reversal.'),
    errors: ['invalid_state_transition'],
    async run({ tx, params, body }) {
      const { sale_id } = await refunds.get(tx, params.id);
      const { sale, customer } = await lockSale(tx, sale_id);
      const refund = await refunds.get(tx, params.id, { lock: true });
      requireState(refund.reversed_at === null, 'The refund is already reversed.');
      return reverseRefund(tx, sale, customer, refund, body.reason);
    },
  }),
];

/**
 * @param before locked, after its customer
 * @throws Problem refund_exceeds_sale, sale_already_refunded, resource_already_exists
 */
export async function refundSale(
  tx: Tx,
  before: Sale,
  customer: Customer | undefined,
  fields: NewRefund,
): Promise<{ sale: Sale; refund: Refund }> {
  await refuseRepeatedRefund(tx, before, fields.external_refund_id);
  const amount_minor = amountOf(fields, before);
  refuseImpossibleTime(tx, before, fields.refunded_at);
  const refund = await recordRefund(tx, before, { ...fields, amount_minor });
  return { sale: await takeBack(tx, before, customer, refund, amount_minor), refund };
}

/** @param amount_minor what the refund takes back now */
async function takeBack(
  tx: Tx,
  before: Sale,
  customer: Customer | undefined,
  refund: Refund,
  amount_minor: number,
): Promise<Sale> {
  const { refunded_at } = refund;
  const last = before.refunded_at;
  const sale = await changeRefunded(tx, before, customer, {
    refunded_minor: before.refunded_minor + amount_minor,
    refunded_at: last !== null && last > refunded_at ? last : refunded_at,
  });
  if (isAttributed(sale)) {
    emitRefund(tx, sale, { amount_minor, refunded_at });
    await followRefunds(tx, sale, customer, 'sale_refunded', refund);
    await correctSalesAfterRefund(tx, before, sale, refunded_at);
  }
  return sale;
}

/** A lost dispute that has not taken all of its amount. */
interface Lacking extends Pick<Dispute, 'id' | 'amount_minor' | 'external_dispute_id' | 'refund_id'> {
  closed_at: string;
  taken_minor: number;
}

/**
 * Refunds what lost disputes have not taken, as far as something is left of the sale: also once a refund is reversed that left nothing. A refund of a
 * dispute that was reversed, or that a request recorded, stays as it is.
 * @param sale locked, after its customer
 */
export async function refundDisputed(tx: Tx, sale: Sale, customer: Customer | undefined): Promise<void> {
  const lacking = await tx.all<Lacking>(sql`
    select t.id, t.amount_minor, t.external_dispute_id, t.refund_id, t.closed_at, coalesce(r.amount_minor, 0) as taken_minor
    from program.dispute t
    left join program.refund r on r.organization_id = t.organization_id and r.id = t.refund_id
    where ${tenant(tx)} and t.sale_id = ${sale.id} and t.status = 'lost' and t.deleted_at is null
      and (r.id is null or r.reason = ${dispute_lost} and r.reversed_at is null and r.amount_minor < t.amount_minor)
    order by t.closed_at, t.id`);
  let after = sale;
  for (const dispute of lacking) {
    const left = after.amount_minor - after.refunded_minor;
    const amount_minor = Math.min(dispute.amount_minor - dispute.taken_minor, left);
    if (amount_minor > 0) after = await refundOne(tx, after, customer, dispute, amount_minor);
  }
}

async function refundOne(
  tx: Tx,
  sale: Sale,
  customer: Customer | undefined,
  { id, external_dispute_id, refund_id, closed_at, taken_minor }: Lacking,
  amount_minor: number,
): Promise<Sale> {
  if (refund_id !== null) {
    const refund = await refunds.update(tx, refund_id, { amount_minor: taken_minor + amount_minor });
    return takeBack(tx, sale, customer, refund, amount_minor);
  }
  const refunded_at = closed_at < sale.occurred_at ? sale.occurred_at : closed_at;
  const external = external_dispute_id === null ? {} : { external_refund_id: external_dispute_id };
  const fields = { amount_minor, reason: dispute_lost, refunded_at, ...external };
  const refunded = await refundSale(tx, sale, customer, fields);
  await disputes.update(tx, id, { refund_id: refunded.refund.id });
  return refunded.sale;
}

/** The `reason` of the refund of a lost dispute. */
const dispute_lost = 'dispute_lost';

/**
 * Takes a refund back that stands.
 * @param before locked, after its customer
 */
export async function reverseRefund(
  tx: Tx,
  before: Sale,
  customer: Customer | undefined,
  { id, amount_minor }: Refund,
  reason?: string,
): Promise<Refund> {
  const refund = await refunds.update(tx, id, { reversed_at: tx.now, reversal_reason: reason ?? null });
  const { refunded_at } = await tx.one<{ refunded_at: string | null }>(sql`
    select max(coalesce(t.refunded_at, t.created_at)) as refunded_at
    from program.refund t
    where ${tenant(tx)} and t.sale_id = ${before.id} and t.reversed_at is null`);
  const refunded_minor = before.refunded_minor - amount_minor;
  const sale = await changeRefunded(tx, before, customer, { refunded_minor, refunded_at });
  if (isAttributed(sale)) {
    emitUpdated(tx, sale);
    await followRefunds(tx, sale, customer, 'refund_reversed', refund);
    await correctSalesAfterRefund(tx, before, sale, refund.refunded_at);
  }
  await refundDisputed(tx, sale, customer);
  await retryRefunds(tx, sale);
  return refund;
}

/** Writes what is refunded of a sale, and what follows of its status and its customer's. */
async function changeRefunded(
  tx: Tx,
  before: Sale,
  customer: Customer | undefined,
  refunded: Pick<Sale, 'refunded_minor' | 'refunded_at'>,
): Promise<Sale> {
  const status = saleStatus(before.amount_minor, refunded.refunded_minor);
  const after = await sales.update(tx, before.id, { ...refunded, status });
  await followStatus(tx, customer, before, after);
  return after;
}

async function followRefunds(
  tx: Tx,
  sale: AttributedSale,
  customer: Customer | undefined,
  cause: 'sale_refunded' | 'refund_reversed',
  refund: Refund,
): Promise<void> {
  await takeOutOfPayouts(tx, sql`t.sale_id = ${sale.id}`);
  if (cause === 'sale_refunded' || (await hasEverEarned(tx, sale))) await adjustCommissions(tx, sale, cause, refund.id);
  else await earnAfterReversal(tx, sale, customer);
  await followDisputes(tx, sale.id);
  assessLater(tx, 'sale', sale.id);
}

/** A sale that was decided anew while it was refunded in full earned its partner nothing then. */
async function earnAfterReversal(tx: Tx, sale: AttributedSale, customer: Customer | undefined): Promise<void> {
  const decision = await readDecision(tx, sale);
  if (decision?.outcome === 'commission') await earnSale(tx, await programs.get(tx, sale.program_id), sale, customer);
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
