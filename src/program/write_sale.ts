/** Writes what is decided of a sale: of one, and of many in sets. */
import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { newId } from '../core/values/id.ts';
import { type Commission, createSaleCommission } from './commissions/commission.ts';
import type { Earning } from './commissions/earn.ts';
import { correctLaterStep } from './correct_sales.ts';
import {
  type Attribution,
  type Customer,
  type CustomerFields,
  createCustomer,
  customers,
  releaseCustomer,
} from './customers/customer.ts';
import { enrolCustomer } from './customers/enrolment.ts';
import { endSelfReferral } from './customers/self_referral.ts';
import { changeReferral, createCustomerOfReferral } from './customers/sign_up.ts';
import { decisionOf } from './earn_sale.ts';
import { event } from './events/event.ts';
import { correctTiersAfter, displaceFirstSale, isNamedBefore } from './late_sale.ts';
import { assessLater } from './programs/assess_later.ts';
import type { Program } from './programs/program.ts';
import { outcomeOf, type SaleOutcome } from './sale_outcome.ts';
import type { Credit } from './sales/credit.ts';
import { placeIn } from './sales/decision.ts';
import { isLost, releaseCharge } from './sales/known_charge.ts';
import { type NewSale, recordSale, type SaleDraft } from './sales/new_sale.ts';
import { flagOwnPurchase } from './sales/own_purchase.ts';
import { describedCustomer, externalIdOf, type Payer } from './sales/payer.ts';
import type { Sale } from './sales/sale.ts';
import { referrals } from './tracking/referral.ts';

/** A sale, and all that is decided of it before anything is written. */
export interface Decided {
  program: Program;
  body: NewSale;
  payer: Payer;
  credit: Credit;
  draft: SaleDraft;
  /** Undefined where nobody is credited. */
  earning: Earning | undefined;
}

/** Writes a sale and what follows from it, at once as far as nothing of it depends on what was written. */
export async function writeSale(tx: Tx, decided: Decided): Promise<SaleOutcome> {
  const { program, credit, earning } = decided;
  const { attribution, own_purchase, place } = credit;
  const { referred } = credit.payer;
  const earned = earning?.outcome;
  if (own_purchase && referred?.partner.id === own_purchase.partner_id) await endSelfReferral(tx, referred.referral);
  if (place.displaced_id !== null) await displaceFirstSale(tx, place.displaced_id);
  const buyer = buyerOf(decided);
  const draft = rowOf(decided, buyer);
  const converts = converting(decided, buyer);
  const [customer, sale, commission, was_lost, converted, adopts] = await together([
    buyer && writeBuyer(tx, buyer, decided),
    recordSale(tx, draft),
    earned?.outcome === 'commission' ? createSaleCommission(tx, program, draft, earned) : undefined,
    isLost(tx, draft),
    converts ? convertReferrals(tx, [converts]) : [],
    buyer && makesKnown(decided) ? isNamedBefore(tx, buyer, placeIn(draft)) : false,
    attribution && earning?.has_tiers
      ? correctTiersAfter(tx, { ...draft, partner_id: attribution.partner.id })
      : undefined,
  ]);
  if (was_lost) releaseCharge(tx, sale);
  if (own_purchase) await flagOwnPurchase(tx, sale, own_purchase);
  tell(tx, decided, { sale, commission, converted: converted[0] });
  if (customer && earned && place.is_first_sale) await enrolCustomer(tx, program, customer);
  if (customer && (place.has_later || adopts)) await correctAfter(tx, sale, customer, decided, adopts);
  return outcomeOf(decided, sale, commission);
}

/** Emits that a sale with a partner is recorded, and what followed. @param request_id its own, where it shares a transaction with other requests */
export function tell(
  tx: Tx,
  { credit: { attribution } }: Decided,
  { sale, commission, converted }: { sale: Sale; commission: Commission | undefined; converted: Converted | undefined },
  request_id?: string | null,
): void {
  if (!attribution) return;
  const cause = request_id ? { request_id } : {};
  tx.emit({ ...event('sale.created', sale, { partner_id: attribution.partner.id }), ...cause });
  if (sale.is_first_sale) assessLater(tx, 'sale', sale.id, request_id);
  if (commission) tx.emit({ ...event('commission.created', commission), ...cause });
  const { customer_id } = sale;
  if (converted && customer_id)
    tx.emit({ ...event('referral.converted', sale, { ...converted, customer_id }), ...cause });
}

/** The columns of a sale that is decided. */
export function rowOf({ body, credit, draft, earning }: Decided, buyer: Buyer | undefined): SaleDraft {
  const unknown_customer = buyer ? undefined : externalIdOf(body);
  const decision = { ...decisionOf(credit, earning), ...(unknown_customer ? { unknown_customer } : {}) };
  return { ...draft, customer_id: buyer?.id ?? null, decision };
}

/**
 * Corrects the sales that come after a late one, in its transaction, so that no payout takes up what is to change: fifty of them, and a job the
 * others.
 */
async function correctAfter(
  tx: Tx,
  sale: Sale,
  { id: customer_id, partner_id }: Customer,
  { payer, credit }: Decided,
  adopts: boolean,
): Promise<void> {
  const before = payer.customer?.partner_id ?? null;
  const moved_from = partner_id === before ? null : before;
  const has_other_visit = changesVisit(payer, credit);
  await correctLaterStep(tx, { customer_id, after: placeIn(sale), moved_from, adopts, has_other_visit });
}

/** Returns whether a sale from before the customer was known says that they came by another visit, or by none. */
const changesVisit = ({ customer }: Payer, { binding: { referral_id } }: Credit): boolean =>
  customer !== undefined && referral_id !== undefined && referral_id !== customer.referral_id;

/** Returns whether the sale makes its customer known from an earlier time on. */
const makesKnown = ({ body, payer, credit }: Decided): boolean =>
  body.occurred_at !== undefined && (!payer.customer || credit.place.is_before_customer);

/** The customer whom a sale is recorded for, as far as it is known before they are written. */
export interface Buyer {
  id: string;
  program_id: string;
  external_customer_id: string | null;
  referral_id: string | null;
}

/** @returns undefined where a sale that nobody is credited with names nobody who is known, or the sale describes nobody */
export function buyerOf({ body, payer: { customer }, credit }: Decided): Buyer | undefined {
  const { attribution, binding, payer } = credit;
  if (customer && (payer.customer || attribution)) {
    const { id, program_id, external_customer_id, referral_id } = customer;
    return { id, program_id, external_customer_id, referral_id, ...binding };
  }
  const referral = payer.referred?.referral;
  const described = describedCustomer(body);
  if (customer || !attribution || (!referral && !described)) return undefined;
  const { external_customer_id = null } = described ?? {};
  return { id: newId('cus'), program_id: body.program_id, external_customer_id, referral_id: referral?.id ?? null };
}

/**
 * Writes what the sale says of its customer. The first payment makes a customer active, and a coupon binds them to its partner; by any other
 * attribution customers stay with theirs.
 */
async function writeBuyer(tx: Tx, { id }: Buyer, { program, body, payer, credit, draft }: Decided): Promise<Customer> {
  const { customer, missing } = payer;
  const { attribution, place, binding } = credit;
  const referral = credit.payer.referred?.referral;
  if (!customer) {
    const fields = fieldsOfNew(body, credit, id, tx.now);
    if (!referral) return createCustomer(tx, program, attribution as Attribution, fields);
    return createCustomerOfReferral(tx, program, { ...(attribution as Attribution), referral }, fields);
  }
  const changes = { ...missing, ...binding, ...(place.is_first_sale ? firstPayment(customer, draft) : {}) };
  if (missing?.email) assessLater(tx, 'customer', customer.id);
  if (missing?.external_customer_id) releaseCustomer(tx, program, customer);
  if (Object.keys(changes).length === 0) return customer;
  const changed = await customers.update(tx, customer.id, changes);
  if (changesVisit(payer, credit)) await changeReferral(tx, customer, changed, referral);
  return changed;
}

export const firstPayment = (customer: Customer, { external_subscription_id, occurred_at }: SaleDraft) => ({
  status: customer.status === 'lead' || customer.status === 'trial' ? ('active' as const) : customer.status,
  external_subscription_id: customer.external_subscription_id ?? external_subscription_id ?? null,
  converted_at: occurred_at,
});

/**
 * What a sale says of its new customer. It is the customer of the click's referral, also where another partner than the click's is credited: the next
 * sale by the click is of the same customer.
 */
export function fieldsOfNew(
  body: NewSale,
  { binding }: Credit,
  id: string,
  now: string,
): CustomerFields & { id: string } {
  const { external_subscription_id, occurred_at } = body;
  const paid = { status: 'active' as const, converted_at: occurred_at ?? now };
  return { ...describedCustomer(body), id, external_subscription_id, ...paid, ...binding };
}

/** Returns the referral that the first payment of a customer converts. */
export const converting = ({ earning, credit }: Decided, buyer: Buyer | undefined): string | undefined =>
  (earning && credit.place.is_first_sale && buyer?.referral_id) || undefined;

export interface Converted {
  referral_id: string;
  partner_id: string;
}

/** Converts referrals, each once: by the first payment of a customer whose sale a partner is credited with. */
export const convertReferrals = (tx: Tx, ids: string[]): Promise<Converted[]> =>
  tx.all<Converted>(sql`
    update program.referral t set status = 'converted', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids}) and ${referrals.alive} and t.status <> 'converted'
    returning t.id as referral_id, t.partner_id`);
