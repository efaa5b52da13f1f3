import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { adjustCommissions, forfeitCommissions, forgetVoided, hasEverEarned } from './commissions/adjust.ts';
import { createSaleCommission } from './commissions/commission.ts';
import { commissionBase } from './commissions/commission_rate.ts';
import { type Earning, earnedBy, exactly, termsOfOne } from './commissions/earn.ts';
import { baseLeft, remainingCommission } from './commissions/remaining_commission.ts';
import type { Customer } from './customers/customer.ts';
import { event } from './events/event.ts';
import { partners } from './partners/partner.ts';
import type { Program } from './programs/program.ts';
import { cameBy, nothing_visited, type Visited, visitedBy } from './sales/came_by.ts';
import type { Credit } from './sales/credit.ts';
import { type Decision, placeIn, undecided } from './sales/decision.ts';
import { ownPurchaseOf, releaseSale, withholdSale } from './sales/own_purchase.ts';
import type { AttributedSale, Sale } from './sales/sale.ts';

/** By what a new sale is credited and paid. */
export const decisionOf = (
  { attribution, candidates }: Pick<Credit, 'attribution' | 'candidates'>,
  earning: Earning | undefined,
): Decision => ({ by: attribution?.by ?? null, candidates, ...(earning?.decided ?? undecided) });

/** Keeps what a recorded sale is decided by now. */
export const noteDecision = (tx: Tx, { id }: Pick<Sale, 'id'>, changes: Partial<Decision>) =>
  tx.all(sql`
    update program.sale t set decision = coalesce(t.decision, ${JSON.stringify(nothing_decided)}::jsonb) || ${JSON.stringify(changes)}::jsonb
    where ${tenant(tx)} and t.id = ${id}`);

const nothing_decided: Decision = { by: null, candidates: {}, ...undecided };

/** Reads what a recorded sale is decided by; null of one that was recorded past the operations. */
export const readDecision = async (tx: Tx, { id }: Pick<Sale, 'id'>): Promise<Decision | null> =>
  (
    await tx.one<{ decision: Decision | null }>(
      sql`select t.decision from program.sale t where ${tenant(tx)} and t.id = ${id}`,
    )
  ).decision;

/** Returns when the customer of a recorded sale first paid; null where by that sale. */
export const firstPaymentBefore = ({ is_first_sale }: Sale, customer: Customer | undefined): string | null =>
  is_first_sale ? null : (customer?.converted_at ?? null);

/** The terms of a recorded sale, as of its place. */
export const termsOfRecorded = (tx: Tx, sale: AttributedSale, customer: Customer | undefined) =>
  termsOfOne(
    tx,
    { ...sale, customer_id: customer?.id, came_by: sale },
    { ...placeIn(sale), sale_id: sale.id, has_later: true },
  );

/**
 * Pays a recorded sale by the rules as they are now, on what is not refunded of it. A partner who has earned by it before earns again only where
 * that was taken back.
 */
export async function earnSale(
  tx: Tx,
  program: Program,
  sale: AttributedSale,
  customer: Customer | undefined,
): Promise<void> {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${sale.partner_id}`, lockOf('share'));
  if (!partner) return;
  const first_sale_at = firstPaymentBefore(sale, customer);
  const terms = await termsOfRecorded(tx, sale, customer);
  const { outcome: earned, decided } = await earnedBy(tx, program, sale, { partner, first_sale_at }, terms);
  await noteDecision(tx, sale, decided);
  if (earned.outcome === 'none') return;
  const left = { ...sale, base_minor: commissionBase(sale, program.commission_on_net_revenue) };
  const amount_minor = exactly(() => remainingCommission(earned, left));
  if (amount_minor === 0) return;
  const paid = { ...earned, amount_minor, base_amount_minor: baseLeft(left) };
  tx.emit(event('commission.created', await createSaleCommission(tx, program, sale, paid)));
}

/**
 * By the rate of the partner's commission, or else by the rules: one to whom the sale is given, and one for whom no rule paid while the amount was
 * wrong. A commission that was cancelled by hand stays cancelled. A partner's own purchase earns nothing.
 */
export async function recalculate(
  tx: Tx,
  program: Program,
  sale: AttributedSale,
  customer: Customer | undefined,
  reassigned: boolean,
): Promise<void> {
  if (reassigned) await forgetVoided(tx, sale);
  const adjusts = await hasEverEarned(tx, sale);
  const own = reassigned || !adjusts ? await ownPurchaseOf(tx, program, sale, customer) : undefined;
  if (own) {
    if (adjusts) await forfeitCommissions(tx, sale);
    await withholdSale(tx, sale, own);
    return;
  }
  if (reassigned || !adjusts) await releaseSale(tx, sale);
  if (adjusts) await adjustCommissions(tx, sale, 'sale_corrected');
  else await earnSale(tx, program, sale, customer);
}

/** Returns what a customer came by, as far as it is the partner's. */
export async function visitOf(tx: Tx, customer: Customer | undefined, partner_id: string): Promise<Visited> {
  const [came_by = nothing_visited] = await cameBy(tx, [{ came_by: visitedBy(customer), partner_id }]);
  return { link_id: came_by.link_id, referral_id: came_by.referral_id };
}
