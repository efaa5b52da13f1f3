/** Corrects sales that a late one has given another place: see sales/README.md. Requests have it done by the functions of late_sale.ts. */
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { emitCorrection } from './change_sale.ts';
import { forgetVoided, takeBackCommissions } from './commissions/adjust.ts';
import { followDisputes } from './commissions/disputed.ts';
import { choiceBy, factsOf, reasonsBy } from './commissions/earn.ts';
import { inMonthOf } from './commissions/partner_month.ts';
import { rules } from './commissions/rule.ts';
import type { Choice } from './commissions/rule_choice.ts';
import { type Customer, customers, lockCustomer } from './customers/customer.ts';
import {
  earnSale,
  firstPaymentBefore,
  noteDecision,
  readDecision,
  recalculate,
  termsOfRecorded,
  visitOf,
} from './earn_sale.ts';
import {
  as_before,
  correctLaterSales,
  correctTiersAfter,
  correctTiersOf,
  type LaterSales,
  namedBefore,
  type PartnerMonth,
} from './late_sale.ts';
import { partners } from './partners/partner.ts';
import { type Program, programs } from './programs/program.ts';
import { boundBy, unboundTo } from './sales/credit.ts';
import { type Candidates, type Decision, type PlaceFacts, placeIn, undecided } from './sales/decision.ts';
import { ownPurchaseOf } from './sales/own_purchase.ts';
import { isAfter, isSettled, type Place, placeOfRow } from './sales/place.ts';
import { type AttributedSale, isAttributed, lockSale, type Sale, sales } from './sales/sale.ts';

/** The number of sales that one transaction corrects: their customers are locked meanwhile. */
const most_of_step = 50;

/**
 * Corrects a step of a customer's later sales, oldest first, and has the next one done. A sale is corrected where its place decides otherwise than
 * before. Both places are compared by the rules of now, so that a rule that has changed since corrects nothing by itself; what is corrected is paid by
 * them. What is settled stays.
 */
export async function correctLaterStep(
  tx: Tx,
  { customer_id, after, moved_from, adopts, has_other_visit }: LaterSales,
): Promise<void> {
  const customer = await lockCustomer(tx, customer_id);
  const program = await programs.get(tx, customer.program_id);
  if (adopts)
    await tx.all(sql`
      update program.sale t set customer_id = ${customer_id}, is_first_sale = false, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and ${namedBefore(customer, after)}`);
  // If nothing depends on places, it is only said that the next sale is the first no more.
  const isChanged = adopts || has_other_visit || moved_from !== null || (await dependsOnPlace(tx, program));
  const later = await tx.all<Sale>(sql`
    select ${sales.columns} from ${sales.from}
    where ${tenant(tx)} and t.customer_id = ${customer_id} and ${sales.alive} and ${isAfter(after)}
    order by ${placeOfRow()}
    limit ${isChanged ? most_of_step : 1}
    ${lockOf(true)}`);
  for (const sale of later) await correctSale(tx, program, sale, { customer, moved_from, has_other_visit });
  const last = later.at(-1);
  if (last && later.length === most_of_step) {
    const next = { customer_id, after: placeIn(last), moved_from, adopts, has_other_visit };
    correctLaterSales(tx, next);
  }
}

/** Returns whether a rule of the program asks which sale of its customer one is. */
const dependsOnPlace = async (tx: Tx, { id: program_id }: Program): Promise<boolean> =>
  (await tx.maybe(sql`
    select from ${rules.from}
    where ${tenant(tx)} and t.program_id = ${program_id} and ${rules.alive} and t.status = 'active'
      and (t.applies_to <> 'all' or t.max_payments is not null or t.duration_months is not null)
    limit 1`)) !== undefined;

interface Owner {
  customer: Customer | undefined;
  moved_from: string | null;
  has_other_visit: boolean;
}

/** @param sale locked, after its customer */
async function correctSale(tx: Tx, program: Program, sale: Sale, owner: Owner): Promise<void> {
  const { customer, moved_from, has_other_visit } = owner;
  const decision = await readDecision(tx, sale);
  if (!decision) return;
  const { by, candidates, facts } = decision;
  if (!isAttributed(sale)) {
    if (!customer || !decision.unknown_customer) return;
    await creditCustomers(tx, program, sale, { customer, candidates });
    return followDisputes(tx, sale.id);
  }
  const isMoved =
    customer !== undefined &&
    sale.partner_id === moved_from &&
    customer.partner_id !== moved_from &&
    customer.tracked_by !== 'manual' &&
    (by === 'customer' || by === 'click' || (by === 'coupon' && !sale.is_first_sale));
  if (isMoved) await creditCustomers(tx, program, sale, { customer, candidates });
  else {
    if ((by === 'coupon' || by === 'click') && !sale.is_first_sale && customer?.partner_id === sale.partner_id) {
      if (sale.coupon_id !== null) await sales.update(tx, sale.id, { coupon_id: null });
      await noteDecision(tx, sale, byCustomer(candidates, customer));
    }
    // A sale without facts keeps a commission from before, with its rate and link.
    if (facts) {
      const after = customer && has_other_visit ? await followVisit(tx, sale, customer) : sale;
      await correctRule(tx, program, after, { before: sale, customer, facts });
    }
  }
  await followDisputes(tx, sale.id);
}

/** Gives a sale the link and the referral that its customer came by, which may pay by another rate. */
async function followVisit(tx: Tx, sale: AttributedSale, customer: Customer): Promise<AttributedSale> {
  const { link_id, referral_id } = await visitOf(tx, customer, sale.partner_id);
  if (link_id === sale.link_id && referral_id === sale.referral_id) return sale;
  if (await hasSettled(tx, sale)) return sale;
  return (await sales.update(tx, sale.id, { link_id, referral_id })) as AttributedSale;
}

/** Says that whoever is credited is so as the partner of the customer. */
const byCustomer = (candidates: Candidates, { partner_id }: Customer): Pick<Decision, 'by' | 'candidates'> => ({
  by: 'customer',
  candidates: { ...candidates, customer: partner_id },
});

interface Crediting {
  customer: Customer;
  candidates: Candidates;
  /** The coupon that has made the customer their partner's by this sale. */
  coupon_id?: string;
}

/**
 * Credits a sale to the partner whose the customer is: one of another partner, also the first one by its coupon, or one that named the customer before
 * they were known.
 */
async function creditCustomers(
  tx: Tx,
  program: Program,
  before: Sale,
  { customer, candidates, coupon_id }: Crediting,
): Promise<void> {
  const { partner_id } = customer;
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));
  const isNew = !isAttributed(before);
  if (isNew) await noteDecision(tx, before, { unknown_customer: null });
  if (!partner) return;
  if (isNew ? await ownPurchaseOf(tx, program, { ...before, partner_id }, customer) : await hasSettled(tx, before))
    return;
  const visit = await visitOf(tx, customer, partner_id);
  const after = (await sales.update(tx, before.id, {
    partner_id,
    coupon_id: coupon_id ?? null,
    ...visit,
  })) as AttributedSale;
  emitCorrection(tx, before, after);
  if (!isNew) await takeBackCommissions(tx, before, 'sale_corrected');
  else if (after.status === 'refunded') await customers.update(tx, customer.id, { status: 'refunded' });
  const by = coupon_id === undefined ? byCustomer(candidates, customer) : { by: 'coupon' as const, candidates };
  await noteDecision(tx, after, { ...undecided, ...by });
  await recalculate(tx, program, after, customer, true);
  if (!isNew) await correctTiersAfter(tx, before);
  await correctTiersAfter(tx, after);
}

/**
 * Ends what the coupon of a customer's first sale, which is deleted, made of them, and binds them by the coupon of the sale that is the first then.
 * @param customer locked
 * @param first locked after the customer; undefined where no sale is left
 * @returns the partner whose the customer was until now, if they are another one's
 */
export async function bindAnew(tx: Tx, customer: Customer, first: Sale | undefined): Promise<string | null> {
  if (customer.tracked_by === 'manual') return null;
  const unbound = await unbind(tx, customer);
  const bound = first ? await bindByCoupon(tx, unbound, first) : unbound;
  return bound.partner_id === customer.partner_id ? null : customer.partner_id;
}

async function unbind(tx: Tx, customer: Customer): Promise<Customer> {
  const { partner_id, tracked_by } = await tx.one<{
    partner_id: string | null;
    tracked_by: Customer['tracked_by'];
  }>(sql`
    select t.origin_partner_id as partner_id, t.origin_tracked_by as tracked_by from program.customer t
    where ${tenant(tx)} and t.id = ${customer.id}`);
  if (partner_id === null) return customer;
  return customers.update(tx, customer.id, unboundTo({ partner_id, tracked_by }));
}

async function bindByCoupon(tx: Tx, customer: Customer, first: Sale): Promise<Customer> {
  const decision = await readDecision(tx, first);
  const { coupon_id, partner_id } = decision?.candidates.coupon ?? {};
  if (!decision || !coupon_id || !partner_id || decision.by === 'partner_id' || decision.by === 'correction')
    return customer;
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share'));
  if (!partner || (isAttributed(first) && (await hasSettled(tx, first)))) return customer;
  const program = await programs.get(tx, customer.program_id);
  if (await ownPurchaseOf(tx, program, { ...first, partner_id }, customer)) return customer;
  const bound = await customers.update(tx, customer.id, boundBy(coupon_id, partner_id, customer));
  const candidates = { ...decision.candidates, customer: customer.partner_id };
  if (first.partner_id !== partner_id)
    await creditCustomers(tx, program, first, { customer: bound, candidates, coupon_id });
  else {
    await sales.update(tx, first.id, { coupon_id });
    await noteDecision(tx, first, { by: 'coupon', candidates });
  }
  return bound;
}

/** Pays a sale by another rule, or another tier, where its place asks for one. */
async function correctRule(
  tx: Tx,
  program: Program,
  sale: AttributedSale,
  { before, customer, facts }: { before: AttributedSale; customer: Customer | undefined; facts: PlaceFacts },
): Promise<void> {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${sale.partner_id}`, lockOf('share'));
  if (!partner) return;
  const terms = await termsOfRecorded(tx, sale, customer);
  const first_sale_at = firstPaymentBefore(sale, customer);
  const after = await factsOf(tx, program, sale, { partner, first_sale_at }, terms);
  const terms_before = before === sale ? terms : await termsOfRecorded(tx, before, customer);
  // A rule that was made since is asked about both places.
  const known: PlaceFacts = { ...facts, payments: { ...after.payments, ...facts.payments } };
  const isSame = isSameChoice(
    choiceBy(program, before, partner, known, terms_before),
    choiceBy(program, sale, partner, after, terms),
  );
  if (isSame)
    return void (await noteDecision(tx, sale, { facts: after, ...reasonsBy(program, sale, partner, after, terms) }));
  if (await hasSettled(tx, sale)) return;
  if (await ownPurchaseOf(tx, program, sale, customer)) return;
  await takeBackCommissions(tx, sale, 'sale_corrected');
  await forgetVoided(tx, sale);
  await earnSale(tx, program, sale, customer);
}

const isSameChoice = (one: Choice | null, other: Choice | null): boolean =>
  one?.rule_id === other?.rule_id && one?.rate_type === other?.rate_type && one?.rate_value === other?.rate_value;

/** Returns whether a commission of the sale is settled, or was cancelled by hand. All are locked first: a payout may be taking them up. */
async function hasSettled(tx: Tx, { id, partner_id }: AttributedSale): Promise<boolean> {
  const earned = await tx.all<{ is_settled: boolean }>(sql`
    select (${isSettled}) or c.edited_by_hand or c.edited_total_minor is not null as is_settled
    from program.commission c
    where c.organization_id = ${tx.organization_id} and c.sale_id = ${id} and c.partner_id = ${partner_id}
    order by c.id
    for no key update of c`);
  return earned.some(({ is_settled }) => is_settled);
}

/** Corrects the sales of a month that are in another tier than the one that paid them, some at a time, and has the next ones done. */
export async function correctTiers(tx: Tx, { program_id, partner_id, month, after }: PartnerMonth): Promise<void> {
  const program = await programs.get(tx, program_id);
  const crossing = await tx.all<{ id: string }>(sql`
    with counted as (
      select
        t.id, t.occurred_at, t.external_charge_id, t.decision,
        row_number() over (order by t.occurred_at, t.external_charge_id collate "C") - 1 as sales_count,
        coalesce(sum(t.amount_minor) over (
          partition by t.currency order by t.occurred_at, t.external_charge_id collate "C" rows between unbounded preceding and 1 preceding
        ), 0) as revenue_minor
      from program.sale t
      where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null and ${inMonthOf(month)}
    )
    select t.id
    from counted t
    join program.rule r on r.organization_id = ${tx.organization_id} and r.id = t.decision ->> 'rule_id' and r.tier_metric is not null
    cross join lateral (
      select
        case r.tier_metric when 'sales_count' then t.sales_count else t.revenue_minor end as reached,
        (t.decision #>> array['facts', 'month', r.tier_metric])::numeric as reached_before
    ) v
    where ${after ? isAfter(after) : sql`true`}
      and (select max((x ->> 'from')::numeric) from jsonb_array_elements(r.tiers) x where (x ->> 'from')::numeric <= v.reached)
        is distinct from (select max((x ->> 'from')::numeric) from jsonb_array_elements(r.tiers) x where (x ->> 'from')::numeric <= v.reached_before)
    order by t.occurred_at, t.external_charge_id collate "C"
    limit ${most_of_step}`);
  let last: Place | undefined;
  for (const { id } of crossing) {
    const { sale, customer } = await lockSale(tx, id);
    last = placeIn(sale);
    if (sale.partner_id === partner_id) await correctSale(tx, program, sale, { customer, ...as_before });
  }
  if (last && crossing.length === most_of_step) correctTiersOf(tx, { program_id, partner_id, month, after: last });
}
