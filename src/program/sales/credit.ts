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

/** By what a sale says who is behind it: one of these, or none, and a customer to be made on the way. */
export interface Claim {
  customer_id?: string;
  external_customer_id?: string;
  click_id?: string;
  coupon_external_id?: string;
  partner_id?: string;
  external_subscription_id?: string;
  customer?: CustomerFields;
}

/** Who earns a sale, and the customer it belongs to; nobody of either where nobody is known. */
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
 * @returns no partner when the sale names nobody known, a click that credits nobody, or a customer whose partner was deleted: the sale is not
 * dropped for it
 */
export async function creditSale(tx: Tx, of: Program, claim: Claim): Promise<Credit> {
  const { known, brought } = await knownCustomer(tx, of, claim);
  const history = known ? await historyOf(tx, known) : { sales: 0, first_sale_at: null };
  const first = { is_first_sale: history.sales === 0, first_sale_at: history.first_sale_at };
  const identity = identityOf(claim);

  if (claim.partner_id !== undefined) {
    const partner = await partnerOf(tx, of, claim.partner_id, 'share');
    return { partner, ...first, ...(await customerFor(tx, of, known, { partner, tracked_by: 'api' }, identity)) };
  }
  const coupon =
    first.is_first_sale && claim.coupon_external_id !== undefined
      ? await activeCoupon(tx, of, claim.coupon_external_id)
      : undefined;
  const promoter = coupon && (await partnerStill(tx, coupon.partner_id));
  if (coupon && promoter) {
    const attribution = { partner: promoter, tracked_by: 'coupon' as const, coupon_id: coupon.id };
    const bound = known && (await bindToCoupon(tx, known, promoter, coupon.id));
    const customer = await customerFor(tx, of, bound, attribution, identity);
    return { partner: promoter, coupon_id: coupon.id, ...first, ...customer };
  }
  if (known) {
    const partner = await partnerStill(tx, known.partner_id);
    return { ...(partner ? { partner } : {}), customer: known, ...first };
  }
  if (!brought?.referred || brought.expired) return first;
  const made = await createCustomerOfReferral(tx, of, brought.referred, identity ?? {});
  return { partner: await partnerOf(tx, of, made.partner_id, 'share'), customer: made, ...first };
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
const partnerStill = (tx: Tx, partner_id: string): Promise<Partner | undefined> =>
  partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));

/** `brought`: what is behind the click, where that alone could tell who the customer is. */
interface Named {
  known: Customer | undefined;
  brought?: Awaited<ReturnType<typeof referredBy>>;
}

/** The customer whom the sale names, locked. A click names the customer who signed up with it. */
async function knownCustomer(tx: Tx, of: Program, claim: Claim): Promise<Named> {
  if (claim.customer_id !== undefined) {
    const found = await customers.get(tx, claim.customer_id, { param: 'customer_id', lock: true });
    if (found.program_id !== of.id) throw notFound('customer', found.id, 'customer_id');
    return { known: found };
  }
  const external_id = claim.external_customer_id ?? claim.customer?.external_customer_id;
  const known = external_id === undefined ? undefined : await findCustomerOrLock(tx, of, external_id);
  if (known || claim.click_id === undefined) return { known };
  const signed_up = await customerOfClick(tx, of, claim.click_id);
  if (signed_up) return { known: signed_up };
  const brought = await referredBy(tx, of, claim.click_id);
  const referral_id = brought.referred?.referral.id;
  const referred =
    referral_id && (await customers.find(tx, sql`${tenant(tx)} and t.referral_id = ${referral_id}`, lockOf(true)));
  return { known: referred || undefined, brought };
}

/**
 * Who signed up by a click that was judged: also where its partner was deleted since. Without locking the referral, whose turn is after the
 * customer's.
 */
const customerOfClick = (tx: Tx, of: Program, click_id: string): Promise<Customer | undefined> =>
  customers.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${of.id}
      and t.referral_id = (select k.referral_id from program.click k where k.organization_id = ${tx.organization_id} and k.id = ${click_id})`,
    lockOf(true),
  );

const historyOf = (tx: Tx, of: Customer): Promise<{ sales: number; first_sale_at: string | null }> =>
  tx.one(sql`
    select count(*) as sales, min(t.occurred_at) as first_sale_at
    from program.sale t
    where ${tenant(tx)} and t.customer_id = ${of.id} and t.deleted_at is null`);

async function activeCoupon(
  tx: Tx,
  of: Program,
  external_id: string,
): Promise<{ id: string; partner_id: string } | undefined> {
  return tx.maybe(sql`
    select t.id, t.partner_id
    from program.coupon t
    where ${tenant(tx)} and t.program_id = ${of.id} and t.external_id = ${external_id}
      and t.active and t.deleted_at is null and t.partner_id is not null`);
}

function bindToCoupon(tx: Tx, known: Customer, partner: Partner, coupon_id: string): Promise<Customer> {
  return customers.update(tx, known.id, { partner_id: partner.id, coupon_id, tracked_by: 'coupon' });
}

/** The known customer, else the one whom the sale describes, made now. */
async function customerFor(
  tx: Tx,
  of: Program,
  known: Customer | undefined,
  attribution: Parameters<typeof createCustomer>[2],
  identity: CustomerFields | undefined,
): Promise<{ customer?: Customer }> {
  if (known) return { customer: known };
  return identity ? { customer: await createCustomer(tx, of, attribution, identity) } : {};
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
