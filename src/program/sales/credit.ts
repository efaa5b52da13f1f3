import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { notFound } from '../../core/values/problem.ts';
import {
  type Customer,
  type CustomerFields,
  createCustomer,
  customers,
  findCustomerOrLock,
} from '../customers/customer.ts';
import { createCustomerOfReferral, referredBy } from '../customers/sign_up.ts';
import { type Partner, partnerOf, partners } from '../partners/partner.ts';
import type { Program } from '../programs/program.ts';

/** How a sale names its customer or its partner: one of these, or none, and a customer who may be created with it. */
export interface Claim {
  customer_id?: string;
  external_customer_id?: string;
  click_id?: string;
  coupon_external_id?: string;
  partner_id?: string;
  external_subscription_id?: string;
  customer?: CustomerFields;
}

/** The partner who is credited with a sale, and its customer; either may be unknown. */
export interface Credit {
  partner?: Partner;
  customer?: Customer;
  coupon_id?: string;
  is_first_sale: boolean;
  /** When the customer first paid; null when this sale is the first. */
  first_sale_at: string | null;
}

/**
 * "Who earns a sale: the sale's explicit `partner_id`; else on the customer's first sale an active coupon matched by `external_id`; else the
 * customer's partner; else the click. A first match binds the customer." Locks the customer, so that one sale of many is the first.
 * @returns no partner when the sale names nobody who is known, a click that earns no credit, or a customer whose partner was deleted: the sale
 * is recorded all the same
 */
export async function creditSale(tx: Tx, program: Program, claim: Claim): Promise<Credit> {
  const { customer, brought } = await namedCustomer(tx, program, claim);
  const history = customer ? await historyOf(tx, customer) : { sales: 0, first_sale_at: null };
  const first = { is_first_sale: history.sales === 0, first_sale_at: history.first_sale_at };
  const identity = identityOf(claim);

  if (claim.partner_id !== undefined) {
    const partner = await partnerOf(tx, program, claim.partner_id, 'share');
    const attribution = { partner, tracked_by: 'api' as const };
    return { partner, ...first, ...(await customerFor(tx, program, customer, attribution, identity)) };
  }
  if (first.is_first_sale && claim.coupon_external_id !== undefined) {
    const credit = await creditCoupon(tx, program, claim.coupon_external_id, customer, identity);
    if (credit) return { ...credit, ...first };
  }
  if (customer) {
    const partner = await remainingPartner(tx, customer.partner_id);
    return { ...(partner ? { partner } : {}), customer, ...first };
  }
  if (!brought?.referred || brought.expired) return first;
  const referred = await createCustomerOfReferral(tx, program, brought.referred, identity ?? {});
  return { partner: await partnerOf(tx, program, referred.partner_id, 'share'), customer: referred, ...first };
}

/** The coupon's partner, to whom the customer is bound by it; undefined where no active coupon of a partner has the id. */
async function creditCoupon(
  tx: Tx,
  program: Program,
  external_id: string,
  customer: Customer | undefined,
  identity: CustomerFields | undefined,
): Promise<Pick<Credit, 'partner' | 'customer' | 'coupon_id'> | undefined> {
  const coupon = await activeCoupon(tx, program, external_id);
  const partner = coupon && (await remainingPartner(tx, coupon.partner_id));
  if (!coupon || !partner) return undefined;
  const attribution = { partner, tracked_by: 'coupon' as const, coupon_id: coupon.id };
  const bound = customer && (await bindToCoupon(tx, customer, partner, coupon.id));
  return { partner, coupon_id: coupon.id, ...(await customerFor(tx, program, bound, attribution, identity)) };
}

/** The link and the visit that a customer came by, as far as they are this partner's: a link pays by its own rate to its own partner alone. */
export async function cameBy(
  tx: Tx,
  customer: Pick<Customer, 'link_id' | 'referral_id'> | undefined,
  partner_id: string,
): Promise<Pick<Customer, 'link_id' | 'referral_id'>> {
  if (!customer?.referral_id) return { link_id: null, referral_id: null };
  return tx.one(sql`
    select
      (select t.id from program.link t where ${tenant(tx)} and t.id = ${customer.link_id} and t.partner_id = ${partner_id}) as link_id,
      (select t.id from program.referral t where ${tenant(tx)} and t.id = ${customer.referral_id} and t.partner_id = ${partner_id}) as referral_id`);
}

/** A partner, held in place until the sale is recorded; undefined when deleted: then this partner earns nothing. */
const remainingPartner = (tx: Tx, partner_id: string): Promise<Partner | undefined> =>
  partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));

/** `brought`: the referral behind the click, where that alone could tell who the customer is. */
interface Named {
  customer: Customer | undefined;
  brought?: Awaited<ReturnType<typeof referredBy>>;
}

/** The customer whom the sale names, locked. A click names the customer who signed up with it. */
async function namedCustomer(tx: Tx, program: Program, claim: Claim): Promise<Named> {
  if (claim.customer_id !== undefined) {
    const customer = await customers.get(tx, claim.customer_id, { param: 'customer_id', lock: true });
    if (customer.program_id !== program.id) throw notFound('customer', customer.id, 'customer_id');
    return { customer };
  }
  const external_id = claim.external_customer_id ?? claim.customer?.external_customer_id;
  const customer = external_id === undefined ? undefined : await findCustomerOrLock(tx, program, external_id);
  if (customer || claim.click_id === undefined) return { customer };
  const signed_up = await customerOfClick(tx, program, claim.click_id);
  if (signed_up) return { customer: signed_up };
  const brought = await referredBy(tx, program, claim.click_id);
  const referral_id = brought.referred?.referral.id;
  if (referral_id === undefined) return { customer: undefined, brought };
  return {
    customer: await customers.find(tx, sql`${tenant(tx)} and t.referral_id = ${referral_id}`, lockOf(true)),
    brought,
  };
}

/**
 * Who signed up by a click that was judged: also where its partner was deleted since. Without locking the referral, whose turn is after the
 * customer's.
 */
const customerOfClick = (tx: Tx, program: Program, click_id: string): Promise<Customer | undefined> =>
  customers.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program.id}
      and t.referral_id = (select k.referral_id from program.click k where k.organization_id = ${tx.organization_id} and k.id = ${click_id})`,
    lockOf(true),
  );

const historyOf = (tx: Tx, { id: customer_id }: Customer): Promise<{ sales: number; first_sale_at: string | null }> =>
  tx.one(sql`
    select count(*) as sales, min(t.occurred_at) as first_sale_at
    from program.sale t
    where ${tenant(tx)} and t.customer_id = ${customer_id} and t.deleted_at is null`);

async function activeCoupon(
  tx: Tx,
  program: Program,
  external_id: string,
): Promise<{ id: string; partner_id: string } | undefined> {
  return tx.maybe(sql`
    select t.id, t.partner_id
    from program.coupon t
    where ${tenant(tx)} and t.program_id = ${program.id} and t.external_id = ${external_id}
      and t.active and t.deleted_at is null and t.partner_id is not null`);
}

function bindToCoupon(tx: Tx, customer: Customer, partner: Partner, coupon_id: string): Promise<Customer> {
  return customers.update(tx, customer.id, { partner_id: partner.id, coupon_id, tracked_by: 'coupon' });
}

/** The customer who is known, else the one whom the sale describes, created now. */
async function customerFor(
  tx: Tx,
  program: Program,
  customer: Customer | undefined,
  attribution: Parameters<typeof createCustomer>[2],
  identity: CustomerFields | undefined,
): Promise<{ customer?: Customer }> {
  if (customer) return { customer };
  return identity ? { customer: await createCustomer(tx, program, attribution, identity) } : {};
}

function identityOf({
  customer: described,
  external_customer_id,
  external_subscription_id,
}: Claim): CustomerFields | undefined {
  if (!described && external_customer_id === undefined) return undefined;
  return {
    ...described,
    ...(external_customer_id === undefined ? {} : { external_customer_id }),
    external_subscription_id,
  };
}
