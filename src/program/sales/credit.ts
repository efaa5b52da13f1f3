import sql from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import type { Attribution, Customer } from '../customers/customer.ts';
import { lockPartner, referredBy } from '../customers/sign_up.ts';
import { type Partner, partner_states, partnerOf, partners } from '../partners/partner.ts';
import { type Program, program_states } from '../programs/program.ts';
import { wasActive } from '../tracking/coupon.ts';
import type { Candidates, CreditedBy } from './decision.ts';
import { type OwnPurchase, ownPurchaseBy } from './own_purchase.ts';
import type { CustomerClaim, Payer } from './payer.ts';
import { type CustomerPlace, lockLater, placeOf, placeOfUnknown } from './place.ts';

/** The fields of a sale that name who brought its customer. */
interface Claim extends CustomerClaim {
  coupon_external_id?: string | undefined;
  partner_id?: string | undefined;
  external_charge_id: string;
}

/** The partner who is credited with a sale, and by what; nobody where `attribution` is missing. */
export interface Credit {
  attribution?: Attribution & { by: CreditedBy };
  candidates: Candidates;
  place: CustomerPlace;
  /** Who paid, as of the time of the sale. */
  payer: Payer;
  /** The changes of whose its customer is. */
  binding: Binding;
  /** Set where the partner would be credited with a purchase of their own: nobody is. */
  own_purchase?: OwnPurchase;
}

/** The columns of a customer that say whose they are. */
export type Binding = Partial<
  Pick<Customer, 'partner_id' | 'tracked_by' | 'coupon_id' | 'referral_id' | 'link_id'> & {
    known_from: string | null;
    origin_partner_id: string | null;
    origin_tracked_by: string | null;
  }
>;

/**
 * Finds who is credited with a sale, as of its time.
 * @param payer whose customer is locked, so that one sale of many is the first
 * @returns nobody when the sale names nobody who is known, a click that earns no credit, a customer whose partner was deleted, or a
 * partner who is the customer: the sale is recorded all the same
 */
export async function creditOf(
  tx: Tx,
  program: Program,
  claim: Claim,
  payer: Payer,
  coupon: NamedCoupon | undefined,
): Promise<Credit> {
  const { customer } = payer;
  const { occurred_at, external_charge_id: charge } = claim;
  const [found, likely] = await together([
    customer ? placeOf(tx, customer, occurred_at, charge) : placeOfUnknown({ at: occurred_at ?? tx.now, charge }),
    candidatesOf(tx, program, claim, payer, coupon),
  ]);
  const place = customer && found.has_later ? await placeAmongLocked(tx, customer, found, claim) : found;
  const as_of = await payerAsOf(tx, program, claim, payer, place);
  const candidates = as_of === payer ? likely : await candidatesOf(tx, program, claim, as_of, coupon);
  const chosen = chosenOf(candidates, place.is_first_sale);
  const own_purchase = await ownPurchase(tx, program, claim, as_of, chosen);
  return creditBy(claim, { payer, as_of, place, candidates, own_purchase });
}

/** The facts by which a sale is credited. */
export interface Grounds {
  payer: Payer;
  /** Who paid, as of the time of the sale. */
  as_of: Payer;
  place: CustomerPlace;
  candidates: Possible;
  /** Set where the partner is the customer. */
  own_purchase: OwnPurchase | undefined;
}

export function creditBy(claim: Claim, { payer, as_of, place, candidates, own_purchase }: Grounds): Credit {
  const attribution = own_purchase ? undefined : chosenOf(candidates, place.is_first_sale);
  const isNobodys = place.is_before_customer && !attribution;
  const decided = {
    place: isNobodys ? placeOfUnknown(place) : place,
    payer: as_of,
    candidates: namesOf(claim, candidates, as_of),
  };
  const binding = bindingOf(claim, payer, as_of, place, attribution);
  return { ...decided, binding, ...(own_purchase ? { own_purchase } : {}), ...(attribution ? { attribution } : {}) };
}

/**
 * Returns who paid, as of the time of a sale that comes late: what happened before the sale that recorded the customer is the click's, if anybody's,
 * and until their first sale a customer is not that of its coupon.
 */
async function payerAsOf(tx: Tx, program: Program, claim: Claim, payer: Payer, place: CustomerPlace): Promise<Payer> {
  const { customer, click } = payer;
  if (!customer) return payer;
  if (!place.is_before_customer) return place.origin ? { ...payer, customer: { ...customer, ...place.origin } } : payer;
  if (!click) return {};
  const { referred, expired } = await referredBy(tx, program, click, { at: claim.occurred_at });
  return { click, ...(referred && !expired ? { referred } : {}) };
}

async function placeAmongLocked(
  tx: Tx,
  customer: Customer,
  place: CustomerPlace,
  { occurred_at }: Claim,
): Promise<CustomerPlace> {
  await lockLater(tx, customer.id, place);
  return placeOf(tx, customer, occurred_at, place.charge);
}

/** A match by coupon binds the customer. A late first sale ends what the coupon of a later one changed, or records the customer from its own time on. */
function bindingOf(
  { occurred_at }: Claim,
  { customer }: Payer,
  as_of: Payer,
  { origin, is_before_customer, is_first_sale, has_later }: CustomerPlace,
  chosen: Attribution | undefined,
): Binding {
  if (!customer) return { known_from: occurred_at ?? null, ...originBy(as_of, chosen) };
  const { coupon_id = null, partner, tracked_by } = chosen ?? {};
  if (is_before_customer) {
    if (!partner || !is_first_sale) return {};
    const referral = as_of.referred?.referral;
    return {
      ...{
        partner_id: partner.id,
        tracked_by: tracked_by as Customer['tracked_by'],
        coupon_id,
        known_from: occurred_at ?? null,
      },
      ...{ referral_id: referral?.id ?? null, link_id: referral?.link_id ?? null, ...originBy(as_of, chosen) },
    };
  }
  if (has_later && customer.tracked_by === 'manual') return {};
  if (coupon_id && partner) return boundBy(coupon_id, partner.id, origin ?? customer);
  return origin ? unboundTo(origin) : {};
}

type Origin = Pick<Customer, 'partner_id' | 'tracked_by'>;

/** Makes a customer that of a coupon's partner. @param origin whose they were before, and are again if the coupon counts no more */
export const boundBy = (coupon_id: string, partner_id: string, origin: Origin) => ({
  ...{ coupon_id, partner_id, tracked_by: 'coupon' as const },
  ...{ origin_partner_id: origin.partner_id, origin_tracked_by: origin.tracked_by },
});

/** Ends what a coupon made of a customer. */
export const unboundTo = ({ partner_id, tracked_by }: Origin) => ({
  ...{ partner_id, tracked_by, coupon_id: null },
  ...no_origin,
});

const no_origin = { origin_partner_id: null, origin_tracked_by: null };

/** Returns whose a customer whom a sale records would be without its coupon: the referral's partner's. */
const originBy = ({ referred }: Payer, chosen: Attribution | undefined) =>
  chosen?.coupon_id && referred
    ? { origin_partner_id: referred.partner.id, origin_tracked_by: referred.referral.tracked_by }
    : no_origin;

/** The partner who is credited if the sale is none that comes late, and is nobody's own purchase. */
export const likelyPartner = (
  { partner_id }: Claim,
  { customer, referred }: Payer,
  coupon: NamedCoupon | undefined,
): string | undefined =>
  partner_id ??
  (customer?.converted_at ? undefined : coupon?.partner.id) ??
  customer?.partner_id ??
  referred?.partner.id;

type Credited = Attribution & { by: CreditedBy };

/** The partners who may be credited, each locked until the sale is recorded. A deleted one earns nothing. */
export interface Possible {
  named?: Credited | undefined;
  by_coupon?: Credited | undefined;
  /** The partner of the customer, or else of the click: a click credits nobody where the customer is known. */
  by_customer?: Credited | undefined;
}

/**
 * "Who earns a sale: the sale's explicit `partner_id`; else on the customer's first sale an active coupon matched by `external_id`; else the
 * customer's partner; else the click."
 */
export const chosenOf = ({ named, by_coupon, by_customer }: Possible, is_first_sale: boolean): Credited | undefined =>
  named ?? (is_first_sale ? by_coupon : undefined) ?? by_customer;

function namesOf(
  { coupon_external_id, click_id }: Claim,
  { named, by_coupon }: Possible,
  { customer, click, referred }: Payer,
): Candidates {
  const referral_id = referred?.referral.id ?? click?.referral_id ?? null;
  return {
    ...(named ? { partner_id: named.partner.id } : {}),
    ...(coupon_external_id === undefined
      ? {}
      : {
          coupon: {
            external_id: coupon_external_id,
            coupon_id: by_coupon?.coupon_id ?? null,
            partner_id: by_coupon?.partner.id ?? null,
          },
        }),
    ...(customer ? { customer: customer.partner_id } : {}),
    ...(click_id === undefined
      ? {}
      : { click: { click_id, referral_id, partner_id: referred?.partner.id ?? click?.partner_id ?? null } }),
  };
}

/** @throws Problem resource_not_found when the partner whom the sale names is not the program's */
async function candidatesOf(
  tx: Tx,
  program: Program,
  { partner_id }: Claim,
  payer: Payer,
  coupon: NamedCoupon | undefined,
): Promise<Possible> {
  const [partner, by_customer] = await together([
    partner_id === undefined ? undefined : partnerOf(tx, program, partner_id, 'share'),
    partner_id === undefined ? broughtBy(tx, payer) : undefined,
  ]);
  return { named: partner && namedBy(partner), by_coupon: coupon && couponBy(coupon, program), by_customer };
}

async function broughtBy(tx: Tx, { customer, referred }: Payer): Promise<Credited | undefined> {
  const partner_id = customer?.partner_id ?? referred?.partner.id;
  const tracked_by = customer?.tracked_by ?? referred?.referral.tracked_by;
  if (partner_id === undefined || tracked_by === undefined) return undefined;
  const partner = customer ? await lockPartner(tx, partner_id) : referred?.partner;
  return partner && { partner, tracked_by, by: customer ? 'customer' : 'click' };
}

/** The coupon that a sale names, if it was active at the time, and its partner, locked. */
export interface NamedCoupon {
  coupon_id: string;
  partner: Partner;
}

export async function findCoupon(
  tx: Tx,
  { program_id, coupon_external_id, occurred_at }: Claim & { program_id: string },
): Promise<NamedCoupon | undefined> {
  if (coupon_external_id === undefined) return undefined;
  const found = await tx.maybe<Partner & { coupon_id: string }>(sql`
    select ${partners.columns}, c.id as coupon_id
    from program.coupon c
    join ${partners.from} on t.organization_id = c.organization_id and t.id = c.partner_id and ${partners.alive}
    where c.organization_id = ${tx.organization_id} and c.program_id = ${program_id} and c.external_id = ${coupon_external_id}
      and c.deleted_at is null and ${wasActive(occurred_at)}
    for share of t`);
  if (!found) return undefined;
  const { coupon_id, ...partner } = found;
  return { coupon_id, partner };
}

/** By the sale itself. */
export const namedBy = (partner: Partner): Credited => ({ partner, tracked_by: 'api', by: 'partner_id' });

/** By a coupon of a partner who can earn, unless the program is paused. */
export const couponBy = ({ coupon_id, partner }: NamedCoupon, program: Program): Credited | undefined =>
  allows(program_states, program.status, 'refer') && allows(partner_states, partner.status, 'earn')
    ? { partner, tracked_by: 'coupon', coupon_id, by: 'coupon' }
    : undefined;

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

export interface Times {
  /** The last payment. */
  last_at: string | null;
  /** The last full refund. */
  refunded_at: string | null;
  /** The time of the sale that recorded the customer, if it was sent with one. */
  known_from: string | null;
}

/** Reads what was last of customers. By indexes: of however many sales, a few are read. */
export async function lastSalesOf(tx: Tx, customer_ids: string[]): Promise<Map<string, Times>> {
  const found = await tx.all<Times & { customer_id: string }>(sql`
    select
      c.id as customer_id, c.known_from, (
        select t.occurred_at from program.sale t
        where ${tenant(tx)} and t.customer_id = c.id and t.deleted_at is null
        order by t.occurred_at desc limit 1
      ) as last_at, (
        select t.refunded_at from program.sale t
        where ${tenant(tx)} and t.customer_id = c.id and t.deleted_at is null and t.status = 'refunded'
        order by t.refunded_at desc limit 1
      ) as refunded_at
    from program.customer c
    where c.organization_id = ${tx.organization_id} and c.id = any(${customer_ids})`);
  return new Map(found.map(({ customer_id, ...times }) => [customer_id, times]));
}
