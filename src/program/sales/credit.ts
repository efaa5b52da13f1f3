import sql from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { type Attribution, type Customer, createCustomer, customers } from '../customers/customer.ts';
import { endSelfReferral } from '../customers/self_referral.ts';
import { createCustomerOfReferral } from '../customers/sign_up.ts';
import { type Partner, partner_states, partnerOf, partners } from '../partners/partner.ts';
import { type Program, program_states } from '../programs/program.ts';
import { type CustomerClaim, describedCustomer, type NamedCustomer } from './named_customer.ts';
import { type OwnPurchase, ownPurchaseBy } from './own_purchase.ts';

/** What a sale says of its customer, and of who brought the customer. */
export interface Claim extends CustomerClaim {
  coupon_external_id?: string | undefined;
  partner_id?: string | undefined;
  occurred_at?: string | undefined;
}

/** The partner who is credited with a sale, and its customer; either may be unknown. */
export interface Credit {
  partner?: Partner;
  customer?: Customer;
  /** Whether the customer is recorded with the sale: as active from it on. */
  is_new_customer: boolean;
  coupon_id?: string;
  is_first_sale: boolean;
  /** When the customer first paid; null when this sale is the first. */
  first_sale_at: string | null;
  /** Set where the partner would be credited with a purchase of their own: nobody is. */
  own_purchase?: OwnPurchase;
}

/**
 * "Who earns a sale: the sale's explicit `partner_id`; else on the customer's first sale an active coupon matched by `external_id`; else the
 * customer's partner; else the click. A first match binds the customer."
 * @param named whose customer is locked, so that one sale of many is the first
 * @returns no partner when the sale names nobody who is known, a click that earns no credit, a customer whose partner was deleted, or a
 * partner who is the customer: the sale is recorded all the same
 */
export async function creditSale(tx: Tx, program: Program, claim: Claim, named: NamedCustomer): Promise<Credit> {
  const { customer } = named;
  const reading = customer ? firstSaleAt(tx, customer.id) : Promise.resolve(null);
  const [first_sale_at, attribution] = await together([reading, attributionOf(tx, program, claim, named, reading)]);
  const first = { is_first_sale: first_sale_at === null, first_sale_at };
  const own_purchase = await ownPurchase(tx, program, claim, named, attribution);
  if (own_purchase || !attribution)
    return {
      ...(customer ? { customer } : {}),
      ...{ is_new_customer: false, ...first },
      ...(own_purchase ? { own_purchase } : {}),
    };
  const { partner, coupon_id } = attribution;
  const payer = customer
    ? await bindToCoupon(tx, customer, attribution)
    : await newCustomer(tx, program, claim, named, attribution);
  const is_new_customer = customer === undefined;
  return {
    partner,
    ...(coupon_id ? { coupon_id } : {}),
    ...(payer ? { customer: payer } : {}),
    is_new_customer,
    ...first,
  };
}

/** The partner who is credited if the sale has no coupon of another one, and is nobody's own purchase. */
export const likelyPartner = ({ partner_id }: Claim, { customer, referred }: NamedCustomer): string | undefined =>
  partner_id ?? customer?.partner_id ?? referred?.partner.id;

/** Who is credited, and by what; undefined where nobody is. */
async function attributionOf(
  tx: Tx,
  program: Program,
  { partner_id, coupon_external_id }: Claim,
  { customer, referred }: NamedCustomer,
  first_sale_at: Promise<string | null>,
): Promise<Attribution | undefined> {
  if (partner_id !== undefined) {
    return { partner: await partnerOf(tx, program, partner_id, 'share'), tracked_by: 'api' };
  }
  const by_coupon =
    coupon_external_id !== undefined && (await first_sale_at) === null
      ? await couponAttribution(tx, program, coupon_external_id)
      : undefined;
  if (by_coupon) return by_coupon;
  if (customer) {
    const partner = await remainingPartner(tx, customer.partner_id);
    return partner && { partner, tracked_by: customer.tracked_by };
  }
  if (!referred) return undefined;
  const partner = await partnerOf(tx, program, referred.partner.id, 'share');
  return { partner, tracked_by: referred.referral.tracked_by };
}

/** By an active coupon with the id, of a partner who can earn, unless the program is paused. */
async function couponAttribution(tx: Tx, program: Program, external_id: string): Promise<Attribution | undefined> {
  if (!allows(program_states, program.status, 'refer')) return undefined;
  const coupon = await tx.maybe<{ id: string; partner_id: string }>(sql`
    select t.id, t.partner_id
    from program.coupon t
    where ${tenant(tx)} and t.program_id = ${program.id} and t.external_id = ${external_id}
      and t.active and t.deleted_at is null and t.partner_id is not null`);
  const partner = coupon && (await remainingPartner(tx, coupon.partner_id));
  if (!partner || !allows(partner_states, partner.status, 'earn')) return undefined;
  return { partner, tracked_by: 'coupon', coupon_id: coupon.id };
}

/** A partner, held in place until the sale is recorded; undefined when deleted: then this partner earns nothing. */
const remainingPartner = (tx: Tx, partner_id: string): Promise<Partner | undefined> =>
  partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));

/** Whether nobody is credited because the partner is the customer. The referral that says otherwise ends. */
async function ownPurchase(
  tx: Tx,
  program: Program,
  claim: Claim,
  { customer, click, referred }: NamedCustomer,
  attribution: Attribution | undefined,
): Promise<OwnPurchase | undefined> {
  if (!attribution) {
    const own_of = program.block_self_referrals ? click?.own_of : undefined;
    return own_of ? { partner_id: own_of, matched: 'referral' } : undefined;
  }
  const { partner } = attribution;
  const email = customer ? customer.email : (claim.customer?.email ?? null);
  const own = await ownPurchaseBy(tx, program, partner, { email, click });
  if (own && referred?.partner.id === partner.id) await endSelfReferral(tx, referred.referral);
  return own;
}

/** When customers first paid, other than by a sale: of those who have. By an index: however many sales there are, one of each is read. */
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

/** A coupon binds the customer to its partner; by any other attribution customers stay with theirs. */
async function bindToCoupon(tx: Tx, customer: Customer, { partner, coupon_id, tracked_by }: Attribution) {
  if (coupon_id === undefined) return customer;
  return customers.update(tx, customer.id, { partner_id: partner.id, coupon_id, tracked_by });
}

/**
 * The customer of the click's referral, also where another partner than the click's is credited: the next sale by the click is of the same
 * customer. Where there is no such click, the customer whom the sale describes.
 */
async function newCustomer(
  tx: Tx,
  program: Program,
  claim: Claim,
  { referred }: NamedCustomer,
  attribution: Attribution,
): Promise<Customer | undefined> {
  const described = describedCustomer(claim);
  const { external_subscription_id, occurred_at: converted_at = tx.now } = claim;
  const payer = { ...described, external_subscription_id, status: 'active' as const, converted_at };
  if (referred) {
    const { referral } = referred;
    return createCustomerOfReferral(tx, program, { ...attribution, referral }, payer);
  }
  return described && createCustomer(tx, program, attribution, payer);
}
