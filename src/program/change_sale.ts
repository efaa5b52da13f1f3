import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { insert } from '../core/postgres/write.ts';
import { DeletedMarker, idParams, type Operation, operation } from '../core/resource/operation.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { id, metadata, text } from '../core/values/fields.ts';
import { newId } from '../core/values/id.ts';
import { minorNotNegative } from '../core/values/money.ts';
import { Problem } from '../core/values/problem.ts';
import { adjustCommissions, hasEverEarned, hasRate, takeBackAll, takeBackCommissions } from './commissions/adjust.ts';
import { createSaleCommission } from './commissions/commission.ts';
import { commissionBase, netAmount } from './commissions/commission_rate.ts';
import { earnedBy, exactly } from './commissions/earn.ts';
import { baseLeft, remainingCommission } from './commissions/remaining_commission.ts';
import { type Customer, customers } from './customers/customer.ts';
import { event } from './events/event.ts';
import { partnerOf, partners } from './partners/partner.ts';
import { assessLater } from './programs/assess_later.ts';
import { type Program, programs } from './programs/program.ts';
import { cameBy } from './sales/credit.ts';
import { type AttributedSale, isAttributed, type Sale, sales } from './sales/sale.ts';

const amounts = {
  amount_minor: minorNotNegative,
  tax_minor: minorNotNegative,
  shipping_minor: minorNotNegative,
  fee_minor: minorNotNegative,
  discount_minor: minorNotNegative,
};

const amountParts = Object.keys(amounts) as (keyof typeof amounts)[];

const Refund = z.strictObject({
  amount_minor: z
    .int()
    .min(1)
    .optional()
    .describe("What is given back, in minor units of the sale's currency: all that is left when left out."),
  external_refund_id: text.min(1).max(255).optional().describe('Unique in the program: a second one answers 409.'),
  reason: text.max(1000).optional().describe('Why, for your records.'),
});

/** What can be done with a sale once it is recorded. */
export const saleChangeOperations: Operation[] = [
  operation({
    name: 'sales.update',
    method: 'PATCH',
    path: '/v1/sales/{id}',
    scope: 'sales:write',
    summary: "Corrects a sale's amounts, or who brought it.",
    doc: 'Commissions are recalculated with the rate that they were computed with; what was paid is clawed back or topped up. A new partner earns by the rules, and so does one who has earned nothing by the sale so far.',
    params: idParams,
    body: z
      .strictObject({
        ...amounts,
        partner_id: id('part').describe('Who earns instead.'),
        product_id: text.min(1).max(255).nullable(),
        metadata,
      })
      .partial(),
    reply: sales.schema,
    async run({ tx, params, body }) {
      const { before, bound } = await lockedSale(tx, params.id);
      return correct(tx, before, bound, body);
    },
  }),
  operation({
    name: 'sales.refund',
    method: 'POST',
    path: '/v1/sales/{id}/refund',
    scope: 'sales:write',
    summary: 'Refunds a sale, in whole or in part.',
    doc: '`external_refund_id` or an idempotency key makes it safe to repeat. Unpaid commissions shrink or are voided; for a paid one a clawback carries the difference. Refunding all makes the customer `refunded`.',
    params: idParams,
    body: Refund.default({}),
    example: { amount_minor: 500, external_refund_id: 're_0001', reason: 'Returned' },
    reply: sales.schema,
    errors: ['refund_exceeds_sale', 'sale_already_refunded', 'resource_already_exists'],
    async run({ tx, params, body }) {
      const { before } = await lockedSale(tx, params.id);
      return refund(tx, before, body);
    },
  }),
  operation({
    name: 'sales.delete',
    method: 'DELETE',
    path: '/v1/sales/{id}',
    scope: 'sales:write',
    summary: 'Deletes a sale outright, as when an import is rolled back.',
    doc: 'Unpaid commissions are deleted, paid ones clawed back. The ids of the charge and of its refunds are free again.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      const { before } = await lockedSale(tx, params.id);
      await sales.update(tx, before.id, { deleted_at: tx.now });
      await tx.all(
        sql`update program.refund t set deleted_at = ${tx.now}::timestamptz where ${tenant(tx)} and t.sale_id = ${before.id}`,
      );
      if (isAttributed(before)) {
        tx.emit(event('sale.deleted', before));
        await takeBackAll(tx, before);
      }
      return { id: before.id, object: 'sale', deleted: true as const };
    },
  }),
];

/** The sale, locked after its customer: the order in which a new sale takes these locks. */
async function lockedSale(tx: Tx, sale_id: string): Promise<{ before: Sale; bound: Customer | undefined }> {
  const { customer_id } = await sales.get(tx, sale_id);
  const bound = customer_id === null ? undefined : await customers.get(tx, customer_id, { lock: true });
  return { before: await sales.get(tx, sale_id, { lock: true }), bound };
}

/** @throws Problem refund_exceeds_sale, sale_already_refunded, resource_already_exists */
async function refund(
  tx: Tx,
  before: Sale,
  { amount_minor, external_refund_id, reason }: z.infer<typeof Refund>,
): Promise<Sale> {
  await refuseRepeatedRefund(tx, before, external_refund_id);
  const left = before.amount_minor - before.refunded_minor;
  if (left === 0) throw new Problem('sale_already_refunded', 'Nothing is left of the sale to refund.');
  const amount = amount_minor ?? left;
  if (amount > left) {
    throw new Problem('refund_exceeds_sale', `${left} minor units are left of the sale: refund at most that.`, {
      param: 'amount_minor',
    });
  }
  const { id: sale_id, customer_id } = before;
  await recordRefund(tx, before, { amount_minor: amount, external_refund_id, reason });
  const whole = amount === left;
  const after = await sales.update(tx, sale_id, {
    refunded_minor: before.refunded_minor + amount,
    status: whole ? 'refunded' : 'partially_refunded',
    refunded_at: tx.now,
  });
  if (whole && customer_id !== null) await customers.update(tx, customer_id, { status: 'refunded' });
  if (!isAttributed(after)) return after;
  emitRefund(tx, after, amount);
  await adjustCommissions(tx, after, 'sale_refunded');
  assessLater(tx, 'sale', sale_id);
  return after;
}

/** @param amount_minor what was given back: of one refund, or so far of a sale that is told only now */
function emitRefund(tx: Tx, sale: AttributedSale, amount_minor: number): void {
  tx.emit(event('sale.refunded', sale, { amount_minor, refunded_at: sale.refunded_at as string }));
}

/** @throws Problem resource_already_exists when a refund of this id was faster */
async function recordRefund(tx: Tx, of: Sale, fields: z.infer<typeof Refund>): Promise<void> {
  const made = { ...fields, id: newId('rfd'), program_id: of.program_id, sale_id: of.id, created_at: tx.now };
  if (await insert(tx, 'program.refund', made, { on_conflict: sql`on conflict do nothing` })) return;
  await refuseRepeatedRefund(tx, of, fields.external_refund_id);
  // The sale of the other one was deleted meanwhile.
  await recordRefund(tx, of, fields);
}

async function refuseRepeatedRefund(tx: Tx, of: Sale, external_refund_id: string | undefined): Promise<void> {
  if (external_refund_id === undefined) return;
  const found = await tx.maybe<{ sale_id: string }>(sql`
    select t.sale_id from program.refund t
    where ${tenant(tx)} and t.program_id = ${of.program_id} and t.external_refund_id = ${external_refund_id}
      and t.deleted_at is null`);
  if (!found) return;
  const existing = await sales.find(tx, sql`${tenant(tx)} and t.id = ${found.sale_id}`);
  throw new Problem('resource_already_exists', `The refund '${external_refund_id}' is recorded in this program.`, {
    param: 'external_refund_id',
    ...(existing ? { existing } : {}),
  });
}

type Correction = Partial<Pick<Sale, keyof typeof amounts | 'product_id' | 'metadata'>> & { partner_id?: string };

async function correct(
  tx: Tx,
  before: Sale,
  bound: Customer | undefined,
  { partner_id, ...changes }: Correction,
): Promise<Sale> {
  const of = await programs.get(tx, before.program_id);
  const parts = { ...before, ...changes };
  if (parts.amount_minor < before.refunded_minor) {
    throw new Problem(
      'invalid_parameter',
      `${before.refunded_minor} minor units of the sale are refunded: the amount cannot be less.`,
      {
        param: 'amount_minor',
      },
    );
  }
  const reassigned = partner_id !== undefined && partner_id !== before.partner_id;
  if (reassigned) await partnerOf(tx, of, partner_id, 'share');
  const after = await sales.update(tx, before.id, {
    ...changes,
    net_amount_minor: netAmount(parts),
    status: statusOf(parts.amount_minor, before.refunded_minor),
    ...(reassigned ? { partner_id, ...(await cameBy(tx, bound, partner_id)), coupon_id: null } : {}),
  });
  if (bound) await keepRefunded(tx, bound, before, after);
  const corrected = reassigned || amountParts.some((part) => after[part] !== before[part]);
  if (!isAttributed(after) || !corrected) return after;
  emitCorrection(tx, before, after);
  if (reassigned) await takeBackCommissions(tx, before);
  const settles = await (reassigned ? hasRate : hasEverEarned)(tx, after);
  if (settles) await adjustCommissions(tx, after, 'sale_corrected');
  else await earn(tx, of, after, bound);
  return after;
}

async function hasRefundedSale(tx: Tx, { id: customer_id }: Customer): Promise<boolean> {
  const found = await sales.find(tx, sql`${tenant(tx)} and t.customer_id = ${customer_id} and t.status = 'refunded'`);
  return found !== undefined;
}

/** A sale that had no partner was never reported: it is created now, and what was refunded of it is refunded now. */
function emitCorrection(tx: Tx, before: Sale, after: AttributedSale): void {
  if (before.partner_id !== null) {
    tx.emit(event('sale.updated', after, { previous_amount_minor: before.amount_minor }));
    return;
  }
  tx.emit(event('sale.created', after));
  if (after.refunded_minor > 0) emitRefund(tx, after, after.refunded_minor);
}

/** "Refunding all sets the customer `refunded`": also where a correction leaves nothing, and until one leaves something again. */
async function keepRefunded(tx: Tx, bound: Customer, before: Sale, after: Sale): Promise<void> {
  if (after.status === before.status) return;
  if (after.status === 'refunded') await customers.update(tx, bound.id, { status: 'refunded' });
  else if (before.status === 'refunded' && bound.status === 'refunded' && !(await hasRefundedSale(tx, bound)))
    await customers.update(tx, bound.id, { status: 'active' });
}

const statusOf = (amount_minor: number, refunded_minor: number): Sale['status'] => {
  if (refunded_minor === 0) return 'paid';
  return refunded_minor === amount_minor ? 'refunded' : 'partially_refunded';
};

/**
 * A partner who has earned nothing by the sale so far earns by the rules as they are now, and as much as is not refunded: one to whom it is
 * given, and one for whom no rule paid while its amount was wrong. What was cancelled by hand stays cancelled.
 */
async function earn(tx: Tx, of: Program, after: Sale, bound: Customer | undefined): Promise<void> {
  const owner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${after.partner_id}`, lockOf('share'));
  if (!owner) return;
  const history = bound === undefined ? { first_sale_at: null } : await earlierSale(tx, after);
  const earned = await earnedBy(tx, of, after, { partner: owner, customer: bound, ...history });
  if (earned.outcome === 'none') return;
  const left = { ...after, base_minor: commissionBase(after, of.commission_on_net_revenue) };
  const amount_minor = exactly(() => remainingCommission(earned, left));
  if (amount_minor === 0) return;
  await createSaleCommission(tx, of, after, { ...earned, amount_minor, base_amount_minor: baseLeft(left) });
}

/** When the customer first paid, other than by this sale. */
const earlierSale = (tx: Tx, { id: sale_id, customer_id }: Sale): Promise<{ first_sale_at: string | null }> =>
  tx.one(sql`
    select min(t.occurred_at) as first_sale_at
    from ${sales.from}
    where ${tenant(tx)} and t.customer_id = ${customer_id} and ${sales.alive} and t.id <> ${sale_id}`);
