/** Decides on the sales of a list from what is read once for all of them, and from what those before in the list have made of it. */
import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import type { BulkItem } from '../core/resource/bulk.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { Problem } from '../core/values/problem.ts';
import { earnedBy, type Terms, termsOf } from './commissions/earn.ts';
import { type Customer, customerRow, customers, idLock } from './customers/customer.ts';
import type { ReferredVisitor } from './customers/sign_up.ts';
import { Months } from './months_of_list.ts';
import { type Partner, partners } from './partners/partner.ts';
import { partnerVisits } from './partners/partner_visit.ts';
import { selfReferralBy, type Visit } from './partners/self_referral.ts';
import { type Program, programs } from './programs/program.ts';
import { nothing_visited, type Visited, visitedBy, visitTo } from './sales/came_by.ts';
import { couponBy, creditBy, lastSalesOf, namedBy, type Possible, type Times } from './sales/credit.ts';
import { chargesOf, knownCharge, lockCharges } from './sales/known_charge.ts';
import { draftOf, type NewSale } from './sales/new_sale.ts';
import { externalIdOf, type NamedClick, namedClicks, saysNothingNew } from './sales/payer.ts';
import { type CustomerPlace, placeOfUnknown } from './sales/place.ts';
import { sales } from './sales/sale.ts';
import { attributeVisitors, takesCredit, type Waiting, waitingOfAll, windowEnd } from './tracking/attribution.ts';
import { wasActive } from './tracking/coupon.ts';
import type { Referral } from './tracking/referral.ts';
import { type Buyer, buyerOf, type Decided, fieldsOfNew, firstPayment } from './write_sale.ts';

/** `request_id`: its own, where it shares a transaction with other requests. */
export type Item = BulkItem<NewSale> & { request_id?: string | null };

/** A sale whose payer is known, or is not and is locked by their id at the processor, or is nobody. */
interface Named extends Item {
  program: Program;
  customer: Customer | undefined;
  /** Sales of one payer come one after the other. Undefined where the sale names nobody. */
  key: string | undefined;
  coupon: Coupon | undefined;
  click: NamedClick | undefined;
  /** The visit that led to the payer, where nobody else is known by it. */
  referral: Referral | undefined;
  /** The partner who is credited, unless the sale is left. */
  partner_id: string | undefined;
  /** The link and the visit that the payer came by. */
  came_by: Visited;
}

type Coupon = { coupon_id: string; partner_id: string };

export interface Recorded extends Decided {
  item: Item;
  buyer: Buyer | undefined;
  /** The columns of the customer, where the sale makes one. */
  made: ReturnType<typeof customerRow> | undefined;
}

const keyOf = (program_id: string, external_id: string): string => `${program_id} ${external_id}`;

/** The payers, and the partners of months, whose sales are not recorded in sets: those that the sales which are left name, or might. */
class Left {
  readonly #names = new Set<string>();

  /** @param keys its payer, and the visits that it may be of, as far as they are known @returns none: the sale is left */
  add(body: NewSale, ...keys: (string | null | undefined)[]): [] {
    const { program_id, customer_id, partner_id } = body;
    const external_id = externalIdOf(body);
    const names = [customer_id, external_id && keyOf(program_id, external_id), partner_id ?? anyPartner(program_id)];
    for (const name of [...keys, ...names]) if (name) this.#names.add(name);
    return [];
  }

  hasPayer({ key, program, customer, came_by }: Named): boolean {
    const names = [
      ...[key, came_by.referral_id, customer?.referral_id],
      customer?.external_customer_id && keyOf(program.id, customer.external_customer_id),
    ];
    return names.some((name) => name && this.#names.has(name));
  }

  hasPartner({ program, partner_id }: Named): boolean {
    return [partner_id ?? '', anyPartner(program.id)].some((name) => this.#names.has(name));
  }
}

const anyPartner = (program_id: string): string => `${program_id} any partner`;

export type Names = Awaited<ReturnType<typeof readNames>>;

/**
 * Reads the programs, the charges that are recorded or known otherwise, whom the processor's ids name, which of the others nobody else is making a
 * customer of, and the coupons that were active.
 */
export function readNames(tx: Tx, items: Item[]) {
  const bodies = items.map(({ body }) => body);
  const program_ids = unique(bodies.map(({ program_id }) => program_id));
  const click_ids = unique(bodies.map(({ click_id }) => click_id));
  const external = bodies.filter((body) => externalIdOf(body) !== undefined);
  const named = sql`unnest(${external.map(({ program_id }) => program_id)}::text[], ${external.map(externalIdOf)}::text[]) as g (program_id, external_id)`;
  const hasId = sql`${tenant(tx)} and t.program_id = g.program_id and t.external_customer_id = g.external_id and ${customers.alive}`;
  const by_coupon = items.filter(({ body }) => body.coupon_external_id !== undefined);
  const couponsOf = (field: 'program_id' | 'coupon_external_id' | 'occurred_at') =>
    by_coupon.map(({ body }) => body[field]);
  return together([
    programs.byIds(tx, program_ids),
    lockCharges(tx, bodies),
    tx.all<{ program_id: string; external_charge_id: string; is_recorded: boolean }>(sql`
      select g.program_id, g.charge as external_charge_id, true as is_recorded
      from ${chargesOf(bodies)}
      join program.sale t on ${tenant(tx)} and t.program_id = g.program_id and t.external_charge_id = g.charge and ${sales.alive}
      union all
      select g.program_id, g.charge, false from ${chargesOf(bodies)} join ${knownCharge(tx)}`),
    external.length === 0
      ? []
      : tx.all<{ program_id: string; external_id: string }>(sql`
      with unknown as materialized (
        select distinct g.program_id, g.external_id from ${named} where not exists (select from program.customer t where ${hasId})
      )
      select u.program_id, u.external_id from unknown u
      where pg_try_advisory_xact_lock(${idLock(sql`u.program_id || ' ' || u.external_id`)})`),
    external.length === 0
      ? []
      : tx.all<{ id: string; program_id: string; external_id: string }>(sql`
      select t.id, t.program_id, t.external_customer_id as external_id from ${named} join program.customer t on ${hasId}`),
    by_coupon.length === 0
      ? []
      : tx.all<Coupon & { nth: number }>(sql`
      select g.nth, c.id as coupon_id, c.partner_id
      from unnest(
        ${by_coupon.map(({ nth }) => nth)}::integer[], ${couponsOf('program_id')}::text[], ${couponsOf('coupon_external_id')}::text[],
        ${couponsOf('occurred_at')}::timestamptz[]
      ) as g (nth, program_id, external_id, at)
      join program.coupon c on c.organization_id = ${tx.organization_id} and c.program_id = g.program_id and c.external_id = g.external_id
        and c.deleted_at is null and ${wasActive(sql`g.at`)}`),
    click_ids.length === 0 ? [] : namedClicks(tx, program_ids, click_ids),
  ]);
}

/**
 * The payers, without the charges that are recorded, or come twice. A customer whom somebody else has locked is left: one sale waits for that, and
 * not all.
 */
async function nameAll(
  tx: Tx,
  items: Item[],
  [known_programs, , charges, free, by_external_id, coupons, clicks]: Names,
  left: Left,
): Promise<Named[]> {
  const ids = [...items.flatMap(({ body }) => body.customer_id ?? []), ...by_external_id.map(({ id }) => id)];
  const id_of = new Map(by_external_id.map(({ program_id, external_id, id }) => [keyOf(program_id, external_id), id]));
  const isUnknown = ({ body: { program_id, customer_id, ...claim } }: Item) =>
    customer_id === undefined && !id_of.has(keyOf(program_id, externalIdOf(claim) ?? ''));
  const asked = new Set(items.filter(isUnknown).map(({ body }) => body.click_id));
  const visits = clicks.filter(({ id }) => asked.has(id));
  const [locked, waiting] = await together([
    tx.all<Customer>(sql`
      select ${customers.columns} from ${customers.from}
      where ${tenant(tx)} and t.id = any(${unique(ids)}) and ${customers.alive} order by t.id ${lockOf(true)} skip locked`),
    visits.length === 0 ? undefined : waitingOfAll(tx, visits),
  ]);
  const by_program = new Map(known_programs.map((program) => [program.id, program as unknown as Program]));
  if (waiting) attributeVisitors(tx, by_program, waiting);
  const click_of = new Map(clicks.map((click) => [click.id, click]));
  const by_id = new Map(locked.map((customer) => [customer.id, customer]));
  const is_free = new Set(free.map(({ program_id, external_id }) => keyOf(program_id, external_id)));
  const coupon_of = new Map(coupons.map((coupon) => [coupon.nth, coupon]));
  const recorded = new Set<string>();
  /** The charges that are known otherwise, and those of the list so far. */
  const repeated = new Set<string>();
  for (const { program_id, external_charge_id, is_recorded } of charges)
    (is_recorded ? recorded : repeated).add(keyOf(program_id, external_charge_id));
  /** Whose the payers are after the sales so far, what they came by, and whether they have paid. */
  const state_of = new Map<string, { bound: string | undefined; came_by: Visited; paid: boolean }>();
  /** The visits that lead to customers, in the list. */
  const taken = new Set<string>();
  return items.flatMap((item) => {
    const { body, nth } = item;
    const { program_id, customer_id, click_id } = body;
    const external_id = externalIdOf(body);
    const key = external_id === undefined ? undefined : keyOf(program_id, external_id);
    const charge = keyOf(program_id, body.external_charge_id);
    const program = by_program.get(program_id);
    const id = customer_id ?? (key && id_of.get(key));
    const customer = id === undefined ? undefined : by_id.get(id);
    const click = click_id === undefined ? undefined : click_of.get(click_id);
    if (recorded.has(charge)) return []; // it is refused, and changes nothing
    const isRepeated = repeated.has(charge);
    repeated.add(charge);
    const isOther = customer_id !== undefined && key !== undefined && id_of.get(key) !== customer_id;
    const isKnown = id === undefined ? key === undefined || is_free.has(key) : customer?.program_id === program_id;
    const isOfProgram = click_id === undefined || click?.program_id === program_id;
    const visited = [click?.referral_id, click && waiting?.credits.seenBy(click)?.id];
    if (isRepeated || !isOfProgram || !program || isOther || !isKnown) return left.add(body, ...visited);
    const identified = customer?.id ?? key;
    const before = identified === undefined ? undefined : state_of.get(identified);
    const visit =
      customer || before || !click ? undefined : visitBy(click, program, waiting, body.occurred_at ?? tx.now);
    if (visit === null || (visit && taken.has(visit.id))) return left.add(body, ...visited);
    if (visit) taken.add(visit.id);
    const coupon = coupon_of.get(nth);
    const payer = identified ?? visit?.id;
    const known = {
      bound: customer?.partner_id ?? visit?.partner_id,
      came_by: customer ? visitedBy(customer) : visitTo(visit),
      paid: Boolean(customer?.converted_at),
    };
    const { bound, came_by, paid } = before ?? known;
    const by_coupon = paid || body.partner_id !== undefined ? undefined : coupon?.partner_id;
    const partner_id = body.partner_id ?? by_coupon ?? bound;
    if (payer && (customer || partner_id))
      state_of.set(payer, { bound: customer || before ? (by_coupon ?? bound) : partner_id, came_by, paid: true });
    return [{ ...item, program, customer, key: payer, coupon, click, referral: visit, partner_id, came_by }];
  });
}

/**
 * Returns the visit that a click led to, which has led to nobody else.
 * @returns undefined where there is none, or its window has ended; null where the sale is left: somebody is known by the click, or its credit moves
 */
function visitBy(
  click: NamedClick,
  program: Program,
  waiting: Waiting | undefined,
  at: string,
): Referral | undefined | null {
  const live = waiting?.credits.seenBy(click);
  if (click.own_of !== null || (click.referral_id !== null && click.referral_id !== live?.id)) return null;
  if (live && (live.status !== 'visit' || takesCredit(click, live, program, at))) return null;
  return windowEnd(click.created_at, program.cookie_days) > at ? live : undefined;
}

const later = (at: string, by_ms: number): string => new Date(Date.parse(at) + by_ms).toISOString();

/** The facts that sales are decided by, and what those before in the list have made of them. */
interface Facts {
  partners: Map<string, Partner>;
  times: Map<string, Times>;
  /** The payers, by their keys, as their sales in the list have left them. */
  payers: Map<string, { customer: Customer; last_at: string }>;
  /** The payments of customers by rules, in the list. */
  payments: Map<string, number>;
  /** The payers whom sales named that nobody is credited with. */
  named_before: Set<string>;
  months: Months;
  /** The partners' own visits from the addresses of clicks. */
  own_visits: (Visit & { partner_id: string })[];
}

/**
 * Decides on the sales that come after all others of their customers, who may be new.
 * @returns them, in their order, and the months whose rates they decide on; what is left out is to be recorded by itself
 */
export async function decideAll(tx: Tx, items: Item[], names: Names): Promise<{ decided: Recorded[]; months: Months }> {
  const [left, months] = [new Left(), new Months()];
  const named = await nameAll(tx, items, names, left);
  return { decided: named.length === 0 ? [] : await decide(tx, named, left, months), months };
}

async function decide(tx: Tx, named: Named[], left: Left, months: Months): Promise<Recorded[]> {
  const credited = named.filter(({ partner_id }) => partner_id !== undefined);
  const clicks = named.flatMap(({ click }) => click ?? []);
  const [times, locked, found, unknown, own_visits] = await together([
    lastSalesOf(tx, unique(named.map(({ customer }) => customer?.id))),
    tx.all<Partner>(sql`
      select ${partners.columns} from ${partners.from}
      where ${tenant(tx)} and t.id = any(${unique(named.flatMap(({ partner_id, coupon, customer, referral }) => [partner_id, coupon?.partner_id, customer?.partner_id, referral?.partner_id]))}) and ${partners.alive}
      order by t.id ${lockOf('share')} skip locked`),
    termsOf(
      tx,
      credited.map(({ program, customer, partner_id, came_by }) => ({
        ...{ program_id: program.id, partner_id: partner_id as string, customer_id: customer?.id, came_by },
      })),
    ),
    namedBefore(tx, named),
    clicks.length === 0 ? [] : partnerVisits(tx, unique(named.map(({ partner_id }) => partner_id)), clicks),
  ]);
  const terms_of = new Map(credited.map((one, nth) => [one, found[nth] as Terms]));
  const facts = {
    partners: new Map(locked.map((partner) => [partner.id, partner])),
    ...{ times, payers: new Map(), payments: new Map(), named_before: unknown, months, own_visits },
  };
  const decided: Recorded[] = [];
  for (const one of named) {
    const terms = terms_of.get(one);
    const isLeft = left.hasPayer(one) || (hasTiers(terms) && left.hasPartner(one));
    const outcome = isLeft ? undefined : await decideOne(tx, one, terms, facts);
    if (outcome) {
      note(one, outcome, facts);
      decided.push(outcome);
    } else left.add(one.body, one.key, one.came_by.referral_id);
  }
  return decided;
}

const hasTiers = (terms: Terms | undefined): boolean => terms?.rules.some(({ tiers }) => tiers.length > 0) ?? false;

const unique = (ids: (string | undefined)[]): string[] => [...new Set(ids.filter((id) => id !== undefined))];

/** The keys of payers who are not known, and whom sales name that nobody is credited with. */
async function namedBefore(tx: Tx, named: Named[]): Promise<Set<string>> {
  const unknown = named.filter(({ customer, key }) => !customer && key !== undefined);
  if (unknown.length === 0) return new Set();
  const found = await tx.all<{ program_id: string; external_id: string }>(sql`
    select distinct t.program_id, t.decision ->> 'unknown_customer' as external_id
    from program.sale t
    where ${tenant(tx)} and t.program_id = any(${unique(unknown.map(({ program }) => program.id))}) and t.customer_id is null and t.deleted_at is null
      and t.decision ->> 'unknown_customer' = any(${unknown.map(({ body }) => externalIdOf(body))})`);
  return new Set(found.map(({ program_id, external_id }) => keyOf(program_id, external_id)));
}

/** @returns undefined for what is left: it is late, to be refused, the partner's own, or depends on the partner's month */
async function decideOne(
  tx: Tx,
  one: Named,
  terms: Terms | undefined,
  { partners, times, payers, payments, named_before, months, own_visits }: Facts,
): Promise<Recorded | undefined> {
  const { program, body, key, nth, request_id, partner_id, click } = one;
  const before = key === undefined ? undefined : payers.get(key);
  const customer = before?.customer ?? one.customer;
  const { refunded_at = null } = (one.customer && times.get(one.customer.id)) ?? {};
  const place = placeAfter(tx, body, customer, { ...times.get(one.customer?.id ?? ''), ...before });
  if (!place || (customer && !saysNothingNew(customer, body))) return undefined;
  const candidates = candidatesOf(one, customer, partners);
  if (!candidates) return undefined;
  const referred = referredBy(one, partners);
  const payer = {
    ...(customer ? { customer } : {}),
    ...(click ? { click } : {}),
    ...(referred && !customer ? { referred } : {}),
  };
  const credit = creditBy(body, { payer, as_of: payer, place, candidates, own_purchase: undefined });
  const { attribution } = credit;
  if (attribution?.partner.id !== partner_id || (attribution && isOwn(one, customer, attribution.partner, own_visits)))
    return undefined;
  if (place.is_first_sale && attribution && program.auto_enrol_customers) return undefined;
  if (!customer && attribution && body.occurred_at !== undefined && key && named_before.has(key)) return undefined;
  const isLimited = terms?.rules.some(({ max_payments }) => max_payments !== null);
  if (isLimited && refunded_at !== null && refunded_at >= place.at) return undefined;
  try {
    const draft = draftOf(tx, body, credit, customer?.id ?? null, terms?.came_by ?? nothing_visited);
    const by = attribution && { partner: attribution.partner, first_sale_at: place.first_sale_at };
    // A sale without a time counts those that are recorded before it, in whatever order.
    if (hasTiers(terms) && !months.isLast(draft) && body.occurred_at !== undefined) return undefined;
    const earning =
      by &&
      terms &&
      (await earnedBy(tx, program, draft, by, {
        ...paidBefore(terms, customer, payments),
        month: () => months.soldBefore(tx, draft),
      }));
    const decided = { program, body, payer, credit, draft, earning };
    const buyer = buyerOf(decided);
    const made =
      buyer && attribution && !customer
        ? customerRow(
            tx,
            program,
            { ...attribution, ...(referred ? { referral: referred.referral } : {}) },
            fieldsOfNew(body, credit, buyer.id, tx.now),
          )
        : undefined;
    return { ...decided, item: { nth, body, request_id: request_id ?? null }, buyer, made };
  } catch (problem) {
    if (problem instanceof Problem) return undefined;
    throw problem;
  }
}

function referredBy({ referral, click }: Named, partners: Map<string, Partner>): ReferredVisitor | undefined {
  const partner = referral && partners.get(referral.partner_id);
  return partner && click && { referral, partner, visit: click };
}

/** Returns whether the partner may be the customer. */
function isOwn(
  { body, click }: Named,
  customer: Customer | undefined,
  partner: Partner,
  own_visits: Facts['own_visits'],
): boolean {
  const matched = selfReferralBy({
    partner_email: partner.email,
    customer_email: customer ? customer.email : (body.customer?.email ?? null),
    partner_visits: own_visits.filter(({ partner_id }) => partner_id === partner.id),
    clicks: click ? [click] : [],
  });
  return matched !== undefined || (click !== undefined && click.own_of !== null);
}

/** @returns undefined where a partner is another program's, deleted, or locked by somebody else */
function candidatesOf(
  { program, body, coupon, referral }: Named,
  customer: Customer | undefined,
  partners: Map<string, Partner>,
): Possible | undefined {
  const named = body.partner_id === undefined ? undefined : partners.get(body.partner_id);
  const of_coupon = coupon && partners.get(coupon.partner_id);
  const of_customer = customer && partners.get(customer.partner_id);
  if ((body.partner_id !== undefined && named?.program_id !== program.id) || (coupon && !of_coupon)) return undefined;
  const of_visit = referral && !customer ? partners.get(referral.partner_id) : undefined;
  if ((!named && customer && !of_customer) || (referral && !customer && !of_visit)) return undefined;
  return {
    named: named && namedBy(named),
    by_coupon: coupon && of_coupon && couponBy({ coupon_id: coupon.coupon_id, partner: of_coupon }, program),
    by_customer: named ? undefined : (broughtBy(customer, of_customer) ?? broughtBy(referral, of_visit, 'click')),
  };
}

const broughtBy = (
  who: Customer | Referral | undefined,
  partner: Partner | undefined,
  by: 'customer' | 'click' = 'customer',
): Possible['by_customer'] => who && partner && { partner, tracked_by: who.tracked_by, by };

/** @returns the place after all other sales of the customer; undefined where there is none, or it cannot be told */
function placeAfter(
  tx: Tx,
  { occurred_at, external_charge_id: charge }: NewSale,
  customer: Customer | undefined,
  { last_at, known_from }: Partial<Times>,
): CustomerPlace | undefined {
  const last = last_at ?? '';
  const at = occurred_at ?? (last < tx.now ? tx.now : later(last, 1));
  const place = placeOfUnknown({ at, charge });
  if (!customer) return place;
  const { converted_at } = customer;
  // At the same millisecond the ids of the charges decide, which record_sale.ts compares.
  const isLast = at > last && (occurred_at !== undefined || last < later(tx.now, 1_000));
  if (!isLast || at <= (converted_at ?? known_from ?? '')) return undefined;
  if (converted_at === null) return last === '' ? place : undefined;
  return { ...place, is_first_sale: false, first_sale_at: converted_at };
}

const paymentOf = (customer_id: string, rule_id: string): string => `${customer_id} ${rule_id}`;

/** Adds the payments of the list to those before it. */
const paidBefore = (terms: Terms, customer: Customer | undefined, payments: Facts['payments']): Terms =>
  customer
    ? {
        ...terms,
        rules: terms.rules.map((rule) => ({
          ...rule,
          payments: rule.payments + (payments.get(paymentOf(customer.id, rule.id)) ?? 0),
        })),
      }
    : terms;

/** Notes what a sale changes for those after it in the list. */
function note(
  { key }: Named,
  { payer, credit, draft, earning, buyer, made }: Recorded,
  { payers, payments, named_before, months }: Facts,
): void {
  if (earning?.has_tiers) months.add(draft);
  if (!buyer) {
    if (key !== undefined) named_before.add(key);
    return;
  }
  const earned = earning?.outcome;
  if (earned?.outcome === 'commission' && earned.rule_id !== null && earned.amount_minor > 0) {
    const payment = paymentOf(buyer.id, earned.rule_id);
    payments.set(payment, (payments.get(payment) ?? 0) + 1);
  }
  if (key === undefined) return;
  const paid = credit.place.is_first_sale && payer.customer ? firstPayment(payer.customer, draft) : {};
  const customer = { ...(payer.customer ?? asRecord(made ?? {})), ...credit.binding, ...paid } as Customer;
  payers.set(key, { customer, last_at: draft.occurred_at });
}

/** A new customer as a record: null where nothing is known. */
const asRecord = (row: Record<string, unknown>): object =>
  Object.fromEntries(Object.keys(customers.record.shape).map((field) => [field, row[field] ?? null]));
