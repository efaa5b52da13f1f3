import sql from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import type { Attribution } from '../customers/customer.ts';
import { type Partner, partner_states, partnerOf, partners } from '../partners/partner.ts';
import { type Program, program_states } from '../programs/program.ts';
import { type OwnPurchase, ownPurchaseBy } from './own_purchase.ts';
import type { CustomerClaim, Payer } from './payer.ts';

/** The fields of a sale that name who brought its customer. */
interface Claim extends CustomerClaim {
  coupon_external_id?: string | undefined;
  partner_id?: string | undefined;
}

/** The partner who is credited with a sale, and by what; nobody where `attribution` is missing. */
export interface Credit {
  attribution?: Attribution;
  is_first_sale: boolean;
  /** The time of the customer's first payment; null when this sale is the first. */
  first_sale_at: string | null;
  /** Set where the partner would be credited with a purchase of their own: nobody is. */
  own_purchase?: OwnPurchase;
}

/**
 * Finds who is credited with a sale.
 * @param payer whose customer is locked, so that one sale of many is the first
 * @returns nobody when the sale names nobody who is known, a click that earns no credit, a customer whose partner was deleted, or a
 * partner who is the customer: the sale is recorded all the same
 */
export async function creditOf(tx: Tx, program: Program, claim: Claim, payer: Payer): Promise<Credit> {
  const { customer } = payer;
  const [first_sale_at, candidates] = await together([
    customer ? firstSaleAt(tx, customer.id) : null,
    candidatesOf(tx, program, claim, payer),
  ]);
  const first = { is_first_sale: first_sale_at === null, first_sale_at };
  const attribution = chosenOf(candidates, first.is_first_sale);
  const own_purchase = await ownPurchase(tx, program, claim, payer, attribution);
  if (own_purchase) return { ...first, own_purchase };
  return { ...first, ...(attribution ? { attribution } : {}) };
}

/** The partner who is credited if the sale has no coupon of another one, and is nobody's own purchase. */
export const likelyPartner = ({ partner_id }: Claim, { customer, referred }: Payer): string | undefined =>
  partner_id ?? customer?.partner_id ?? referred?.partner.id;

/** The partners who may be credited, each locked until the sale is recorded. A deleted one earns nothing. */
interface Candidates {
  named?: Attribution | undefined;
  by_coupon?: Attribution | undefined;
  /** The partner of the customer, or else of the click: a click credits nobody where the customer is known. */
  by_customer?: Attribution | undefined;
}

/**
 * "Who earns a sale: the sale's explicit `partner_id`; else on the customer's first sale an active coupon matched by `external_id`; else the
 * customer's partner; else the click."
 */
const chosenOf = ({ named, by_coupon, by_customer }: Candidates, is_first_sale: boolean): Attribution | undefined =>
  named ?? (is_first_sale ? by_coupon : undefined) ?? by_customer;

/** @throws Problem resource_not_found when the partner whom the sale names is not the program's */
async function candidatesOf(
  tx: Tx,
  program: Program,
  { partner_id, coupon_external_id }: Claim,
  payer: Payer,
): Promise<Candidates> {
  if (partner_id !== undefined) {
    return { named: { partner: await partnerOf(tx, program, partner_id, 'share'), tracked_by: 'api' } };
  }
  const [by_coupon, by_customer] = await together([
    coupon_external_id === undefined ? undefined : couponAttribution(tx, program, coupon_external_id),
    broughtBy(tx, payer),
  ]);
  return { by_coupon, by_customer };
}

async function broughtBy(tx: Tx, { customer, referred }: Payer): Promise<Attribution | undefined> {
  const partner_id = customer?.partner_id ?? referred?.partner.id;
  const tracked_by = customer?.tracked_by ?? referred?.referral.tracked_by;
  if (partner_id === undefined || tracked_by === undefined) return undefined;
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));
  return partner && { partner, tracked_by };
}

/** By an active coupon with the id, of a partner who can earn, unless the program is paused. */
async function couponAttribution(tx: Tx, program: Program, external_id: string): Promise<Attribution | undefined> {
  if (!allows(program_states, program.status, 'refer')) return undefined;
  const found = await tx.maybe<Partner & { coupon_id: string }>(sql`
    select ${partners.columns}, c.id as coupon_id
    from program.coupon c
    join ${partners.from} on t.organization_id = c.organization_id and t.id = c.partner_id and ${partners.alive}
    where c.organization_id = ${tx.organization_id} and c.program_id = ${program.id} and c.external_id = ${external_id}
      and c.active and c.deleted_at is null
    for share of t`);
  if (!found || !allows(partner_states, found.status, 'earn')) return undefined;
  const { coupon_id, ...partner } = found;
  return { partner, tracked_by: 'coupon', coupon_id };
}

/** Returns the match if nobody is credited because the partner is the customer. */
async function ownPurchase(
  tx: Tx,
  program: Program,
  claim: Claim,
  { customer, click }: Payer,
  attribution: Attribution | undefined,
): Promise<OwnPurchase | undefined> {
  if (!attribution) {
    const own_of = program.block_self_referrals ? click?.own_of : undefined;
    return own_of ? { partner_id: own_of, matched: 'referral' } : undefined;
  }
  const email = customer ? customer.email : (claim.customer?.email ?? null);
  return ownPurchaseBy(tx, program, attribution.partner, { email, click });
}

/** Reads the time of the first payment of customers, other than by a sale. By an index: however many sales there are, one of each is read. */
export async function firstSalesOf(
  tx: Tx,
  customer_ids: string[],
  other_than: string | null = null,
): Promise<Map<string, string>> {
  const first = await tx.all<{ customer_id: string; occurred_at: string }>(sql`
    select g.customer_id, s.occurred_at
    from unnest(${customer_ids}::text[]) as g (customer_id)
    cross join lateral (
      select t.occurred_at from program.sale t
      where ${tenant(tx)} and t.customer_id = g.customer_id and t.deleted_at is null and t.id is distinct from ${other_than}
      order by t.occurred_at limit 1
    ) s`);
  return new Map(first.map(({ customer_id, occurred_at }) => [customer_id, occurred_at]));
}

/** The same of one customer; null where that sale is the first. */
export const firstSaleAt = async (tx: Tx, customer_id: string, other_than?: string): Promise<string | null> =>
  (await firstSalesOf(tx, [customer_id], other_than)).get(customer_id) ?? null;
