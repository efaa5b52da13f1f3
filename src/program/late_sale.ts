import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { tenant } from '../core/resource/resource.ts';
import { inMonthOf } from './commissions/partner_month.ts';
import { isNothingLeft } from './commissions/remaining_commission.ts';
import { rules } from './commissions/rule.ts';
import type { Customer } from './customers/customer.ts';
import { placeIn } from './sales/decision.ts';
import { isAfter, type Place } from './sales/place.ts';
import { type AttributedSale, emitUpdated, isAttributed, type Sale, sales } from './sales/sale.ts';

/** A customer's sales after a place, which what happened there may change. */
export interface LaterSales {
  customer_id: string;
  after: Place;
  /** The partner whose the customer was until a late first sale changed that. */
  moved_from: string | null;
  /** True if sales after the place, which named the customer before they were known, are theirs now. */
  adopts: boolean;
  /** True if the customer came by another link or referral than was known, or by none. */
  has_other_visit: boolean;
}

/** The customer is whose they were, by what they came. */
export const as_before = { moved_from: null, adopts: false, has_other_visit: false };

/** Has the sales corrected that come after a late one, or after what is refunded late. */
export const correctLaterSales = (tx: Tx, later: LaterSales): void =>
  tx.enqueue('program/correct_later_sales', {
    organization_id: tx.organization_id,
    request_id: tx.request_id,
    ...later,
  });

/** Has the sales after a refund corrected, where the sales that rules paid for are others than before. */
export async function correctSalesAfterRefund(tx: Tx, before: Sale, after: Sale, refunded_at: string): Promise<void> {
  if ((before.status === 'refunded') !== (after.status === 'refunded'))
    await correctSalesAfter(tx, after, { at: refunded_at, charge: '' });
}

async function correctSalesAfter(tx: Tx, { customer_id }: Sale, after: Place): Promise<void> {
  if (customer_id === null) return;
  const later = await tx.maybe(sql`
    select from program.sale t
    where ${tenant(tx)} and t.customer_id = ${customer_id} and t.deleted_at is null and ${isAfter(after)}
    limit 1`);
  if (later) correctLaterSales(tx, { customer_id, after, ...as_before });
}

/** Has the sales after one that is corrected follow it: its partner, whether anything is left of it, and the revenue of a month count for them too. */
export async function correctSalesAfterCorrection(tx: Tx, before: Sale, after: AttributedSale): Promise<void> {
  const reassigned = before.partner_id !== after.partner_id;
  if (reassigned && isAttributed(before)) await correctTiersAfter(tx, before);
  if (reassigned || before.amount_minor !== after.amount_minor) await correctTiersAfter(tx, after);
  if (reassigned || isNothingLeft(before) !== isNothingLeft(after)) await correctSalesAfter(tx, after, placeIn(after));
}

type NamedCustomer = Pick<Customer, 'program_id' | 'external_customer_id'>;

/** Selects the sales `t` that named a customer before they were known, and come after a place. */
export const namedBefore = ({ program_id, external_customer_id }: NamedCustomer, place: Place): Sql => sql`
  t.program_id = ${program_id} and t.customer_id is null and t.deleted_at is null
  and t.decision ->> 'unknown_customer' = ${external_customer_id} and ${isAfter(place)}`;

/** Returns whether a sale that recorded a customer comes late: sales after it named them. */
export const isNamedBefore = async (tx: Tx, customer: NamedCustomer, place: Place): Promise<boolean> =>
  customer.external_customer_id !== null &&
  (await tx.maybe(sql`select from program.sale t where ${tenant(tx)} and ${namedBefore(customer, place)} limit 1`)) !==
    undefined;

/** Ends that a sale is its customer's first: an earlier one is. */
export async function displaceFirstSale(tx: Tx, id: string): Promise<void> {
  const displaced = await sales.update(tx, id, { is_first_sale: false });
  if (isAttributed(displaced)) emitUpdated(tx, displaced);
}

/** A partner's calendar month, from a place on. */
export interface PartnerMonth {
  program_id: string;
  partner_id: string;
  /** Its beginning. */
  month: string;
  after: Place | null;
}

/** Has a step of the month corrected. */
export const correctTiersOf = (tx: Tx, month: PartnerMonth): void =>
  tx.enqueue(
    'program/correct_tiers',
    { organization_id: tx.organization_id, request_id: tx.request_id, ...month },
    month.after ? {} : { job_key: `correct_tiers:${month.partner_id}:${month.month}` },
  );

/** Has the partner's month corrected, if sales of it that come after this one are recorded, and tiers depend on them. */
export async function correctTiersAfter(tx: Tx, sale: MonthlySale): Promise<void> {
  const { program_id, partner_id, occurred_at } = sale;
  const needed = await tx.maybe(sql`
    select from ${rules.from}
    where ${tenant(tx)} and t.program_id = ${program_id} and ${rules.alive} and t.status = 'active' and t.tier_metric is not null
      and exists (
        select from program.sale t
        where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null and ${inMonthOf(occurred_at)} and ${isAfter(placeIn(sale))}
      )
    limit 1`);
  if (needed) correctTiersIn(tx, sale);
}

type MonthlySale = Pick<AttributedSale, 'program_id' | 'partner_id' | 'occurred_at' | 'external_charge_id'>;

/** Has the partner's month of a sale corrected. */
export const correctTiersIn = (tx: Tx, { program_id, partner_id, occurred_at }: MonthlySale): void =>
  correctTiersOf(tx, { program_id, partner_id, month: `${occurred_at.slice(0, 7)}-01T00:00:00.000Z`, after: null });
