import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { externalId, id, metadata } from '../core/values/fields.ts';
import { minorNotNegative } from '../core/values/money.ts';
import { Problem } from '../core/values/problem.ts';
import { takeBackCommissions } from './commissions/adjust.ts';
import { followDisputes } from './commissions/disputed.ts';
import type { Customer } from './customers/customer.ts';
import { noteDecision, recalculate, visitOf } from './earn_sale.ts';
import { event } from './events/event.ts';
import { correctSalesAfterCorrection } from './late_sale.ts';
import { partnerOf } from './partners/partner.ts';
import { keepStatedAmount } from './payouts/payout_statement.ts';
import { takeOutOfPayouts } from './payouts/release.ts';
import { programs } from './programs/program.ts';
import { emitRefund, refundOperations } from './refund_sale.ts';
import { undecided } from './sales/decision.ts';
import { amount_fields, netAmount } from './sales/net_amount.ts';
import { refuseNegativeNet } from './sales/new_sale.ts';
import { retryRefunds } from './sales/refund.ts';
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

const amounts = {
  amount_minor: minorNotNegative,
  tax_minor: minorNotNegative,
  shipping_minor: minorNotNegative,
  fee_minor: minorNotNegative,
  discount_minor: minorNotNegative,
};

/** Operations on a recorded sale. */
export const saleChangeOperations: Operation[] = [
  operation({
    name: 'sales.update',
    method: 'PATCH',
    path: '/v1/sales/{id}',
    scope: 'sales:write',
    summary: "Corrects a sale's amounts or its partner.",
    doc: 'Commissions are recalculated with the rate that they were computed with; an amount that was edited by hand is scaled instead. For what is already paid, the difference is a clawback or a bonus. Later sales whose tier, or number of payments, that changes are corrected too, unless they are paid, approved or on hold. A new partner earns by the current rules, and so does a partner who has earned nothing from the sale so far. A commission that was voided, rejected, deleted or edited by hand stays so, also when the sale returns to its partner. If the program blocks self-referrals, a sale that is given to the partner who made the purchase earns nothing, and a risk flag is raised.',
    params: idParams,
    body: z
      .strictObject({
        ...amounts,
        partner_id: id('part').describe('The partner to credit instead.'),
        product_id: externalId.nullable(),
        metadata,
      })
      .partial(),
    reply: sales.schema,
    async run({ tx, params, body }) {
      const { sale, customer } = await lockSale(tx, params.id);
      return correct(tx, sale, customer, body);
    },
  }),
  ...refundOperations,
];

type Correction = Partial<Pick<Sale, keyof typeof amounts | 'product_id' | 'metadata'>> & { partner_id?: string };

/** @throws Problem invalid_parameter when the amount is below what is refunded; resource_not_found when the partner is not the program's */
export async function correct(
  tx: Tx,
  before: Sale,
  customer: Customer | undefined,
  { partner_id, ...changes }: Correction,
): Promise<Sale> {
  const program = await programs.get(tx, before.program_id);
  const parts = { ...before, ...changes };
  refuseBelowRefunded(parts);
  refuseNegativeNet(
    parts,
    amount_fields.filter((field) => changes[field] !== undefined),
  );
  const reassigned = partner_id !== undefined && partner_id !== before.partner_id;
  if (reassigned) await partnerOf(tx, program, partner_id, 'share');
  const after = await sales.update(tx, before.id, {
    ...changes,
    net_amount_minor: netAmount(parts),
    status: saleStatus(parts.amount_minor, before.refunded_minor),
    ...(reassigned ? { partner_id, ...(await visitOf(tx, customer, partner_id)), coupon_id: null } : {}),
  });
  await followStatus(tx, customer, before, after);
  if (after.amount_minor > before.amount_minor) await retryRefunds(tx, after);
  if (reassigned) await noteDecision(tx, after, { by: 'correction', ...undecided });
  const corrected = reassigned || amount_fields.some((part) => after[part] !== before[part]);
  if (!isAttributed(after) || !corrected) return after;
  emitCorrection(tx, before, after);
  await takeOutOfPayouts(tx, sql`t.sale_id = ${after.id}`);
  if (reassigned) await takeBackCommissions(tx, before, 'sale_corrected');
  await recalculate(tx, program, after, customer, reassigned);
  await followDisputes(tx, after.id);
  await correctSalesAfterCorrection(tx, before, after);
  // The commissions are locked: what deletes a payout locks them before it takes them out.
  if (after.amount_minor !== before.amount_minor) await keepStatedAmount(tx, before);
  return after;
}

function refuseBelowRefunded({ amount_minor, refunded_minor }: Sale): void {
  if (amount_minor >= refunded_minor) return;
  throw new Problem(
    'invalid_parameter',
    `${refunded_minor} minor units of the sale are already refunded. The amount cannot be lower.`,
    { param: 'amount_minor' },
  );
}

/** A sale that had no partner was never reported: it is created now, and what was refunded of it is refunded now. */
export function emitCorrection(tx: Tx, before: Sale, after: AttributedSale): void {
  if (before.partner_id !== null) {
    emitUpdated(tx, after, before.amount_minor);
    return;
  }
  tx.emit(event('sale.created', after));
  const { refunded_minor: amount_minor, refunded_at } = after;
  if (refunded_at !== null) emitRefund(tx, after, { amount_minor, refunded_at });
}
