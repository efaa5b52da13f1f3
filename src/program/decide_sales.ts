/** Decides on the sales of a list from what is read once for all of them, and from what those before in the list have made of it. */
import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import type { BulkItem } from '../core/resource/bulk.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { Problem } from '../core/values/problem.ts';
import { earnedBy, type Terms, termsOf } from './commissions/earn.ts';
import { type Customer, customerRow, customers } from './customers/customer.ts';
import { correctTiersAfter, correctTiersIn } from './late_sale.ts';
import { type Partner, partners } from './partners/partner.ts';
import { type Program, programs } from './programs/program.ts';
import { nothing_visited, visitedBy } from './sales/came_by.ts';
import { couponBy, creditBy, lastSalesOf, namedBy, type Possible, type Times } from './sales/credit.ts';
import { placeIn } from './sales/decision.ts';
import { chargesOf, knownCharge, lockCharges } from './sales/known_charge.ts';
import { draftOf, type NewSale, type SaleDraft } from './sales/new_sale.ts';
import { externalIdOf, saysNothingNew } from './sales/payer.ts';
import { type CustomerPlace, comparePlaces, placeOfUnknown } from './sales/place.ts';
import { sales } from './sales/sale.ts';
import { wasActive } from './tracking/coupon.ts';
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
  /** The partner who is credited, unless the sale is left. */
  partner_id: string | undefined;
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

  /** @returns none: the sale is left */
  add(body: NewSale, key?: string): [] {
    const { program_id, customer_id, click_id, partner_id } = body;
    const external_id = externalIdOf(body);
    const names = [
      key,
      customer_id,
      external_id && keyOf(program_id, external_id),
      partner_id ?? anyPartner(program_id),
    ];
    for (const name of names) if (name) this.#names.add(name);
    // The click may be of any customer, or of any who has no id of the processor.
    if (click_id !== undefined && customer_id === undefined)
      this.#names.add(external_id === undefined ? program_id : keyOf(program_id, ''));
    return [];
  }

  hasPayer({ key, program, customer }: Named): boolean {
    if (key === undefined) return false;
    const names = customer ? [keyOf(program.id, customer.external_customer_id ?? '')] : [];
    return [key, program.id, ...names].some((name) => this.#names.has(name));
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
  const external = bodies.filter((body) => externalIdOf(body) !== undefined);
  const named = sql`unnest(${external.map(({ program_id }) => program_id)}::text[], ${external.map(externalIdOf)}::text[]) as g (program_id, external_id)`;
  const hasId = sql`${tenant(tx)} and t.program_id = g.program_id and t.external_customer_id = g.external_id and ${customers.alive}`;
  const by_coupon = items.filter(({ body }) => body.coupon_external_id !== undefined);
  const couponsOf = (field: 'program_id' | 'coupon_external_id' | 'occurred_at') =>
    by_coupon.map(({ body }) => body[field]);
  return together([
    programs.byIds(tx, [...new Set(bodies.map(({ program_id }) => program_id))]),
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
      where pg_try_advisory_xact_lock(hashtextextended(u.program_id || ' ' || u.external_id, 1))`),
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
  ]);
}

/**
 * The payers, without the charges that are recorded, or come twice. A customer whom somebody else has locked is left: one sale waits for that, and
 * not all.
 */
async function nameAll(
  tx: Tx,
  items: Item[],
  [known_programs, , charges, free, by_external_id, coupons]: Names,
  left: Left,
): Promise<Named[]> {
  const ids = [...items.flatMap(({ body }) => body.customer_id ?? []), ...by_external_id.map(({ id }) => id)];
  const locked = await tx.all<Customer>(sql`
    select ${customers.columns} from ${customers.from}
    where ${tenant(tx)} and t.id = any(${[...new Set(ids)]}) and ${customers.alive} order by t.id ${lockOf(true)} skip locked`);
  const by_program = new Map(known_programs.map((program) => [program.id, program as unknown as Program]));
  const by_id = new Map(locked.map((customer) => [customer.id, customer]));
  const id_of = new Map(by_external_id.map(({ program_id, external_id, id }) => [keyOf(program_id, external_id), id]));
  const is_free = new Set(free.map(({ program_id, external_id }) => keyOf(program_id, external_id)));
  const coupon_of = new Map(coupons.map((coupon) => [coupon.nth, coupon]));
  const [recorded, repeated] = [true, false].map(
    (which) =>
      new Set(
        charges
          .filter(({ is_recorded }) => is_recorded === which)
          .map(({ program_id, external_charge_id }) => keyOf(program_id, external_charge_id)),
      ),
  ) as [Set<string>, Set<string>];
  /** Whose the payers are after the sales so far, and whether they have paid. */
  const partner_of = new Map<string, { bound: string | undefined; paid: boolean }>();
  return items.flatMap((item) => {
    const { body, nth } = item;
    const { program_id, customer_id, click_id } = body;
    const external_id = externalIdOf(body);
    const key = external_id === undefined ? undefined : keyOf(program_id, external_id);
    const charge = keyOf(program_id, body.external_charge_id);
    const program = by_program.get(program_id);
    const id = customer_id ?? (key && id_of.get(key));
    const customer = id === undefined ? undefined : by_id.get(id);
    if (recorded.has(charge)) return []; // it is refused, and changes nothing
    const isRepeated = repeated.has(charge);
    repeated.add(charge);
    const isOther = customer_id !== undefined && key !== undefined && id_of.get(key) !== customer_id;
    const isKnown = id === undefined ? key === undefined || is_free.has(key) : customer?.program_id === program_id;
    if (isRepeated || click_id !== undefined || !program || isOther || !isKnown) return left.add(body);
    const coupon = coupon_of.get(nth);
    const payer = customer?.id ?? key;
    const known = { bound: customer?.partner_id, paid: Boolean(customer?.converted_at) };
    const { bound, paid } = (payer && partner_of.get(payer)) || known;
    const by_coupon = paid || body.partner_id !== undefined ? undefined : coupon?.partner_id;
    const partner_id = body.partner_id ?? by_coupon ?? bound;
    if (payer && (customer || partner_id))
      partner_of.set(payer, { bound: by_coupon ?? bound ?? partner_id, paid: true });
    return [{ ...item, program, customer, key: payer, coupon, partner_id }];
  });
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
}

/** The months of partners that decide on rates, as the sales of the list have left them. */
class Months {
  readonly #found = new Map<string, Month>();

  /** Returns what the list has sold in the month of a sale, and whether the sale comes after all of that. */
  before(sale: SaleDraft): { unwritten: NonNullable<Terms['unwritten']>; is_last: boolean } {
    const month = this.#found.get(monthOf(sale));
    const unwritten = {
      sales_count: month?.sales_count ?? 0,
      revenue_minor: month?.revenue.get(sale.currency) ?? 0,
    };
    return { unwritten, is_last: !month || comparePlaces(placeIn(sale), placeIn(month.last)) > 0 };
  }

  add(sale: SaleDraft): void {
    const month = this.#found.get(monthOf(sale)) ?? {
      ...{ first: sale, last: sale, sales_count: 0, revenue: new Map(), is_ordered: true },
    };
    const { is_last } = this.before(sale);
    if (is_last) month.last = sale;
    if (comparePlaces(placeIn(sale), placeIn(month.first)) < 0) month.first = sale;
    month.is_ordered &&= is_last;
    month.sales_count += 1;
    month.revenue.set(sale.currency, (month.revenue.get(sale.currency) ?? 0) + sale.amount_minor);
    this.#found.set(monthOf(sale), month);
  }

  /** Has the months corrected in which the order of the sales is another one, or sales come later. To be called before the sales are written. */
  async correct(tx: Tx): Promise<void> {
    const months = [...this.#found.values()].map(
      ({ first, is_ordered }) => [{ ...first, partner_id: first.partner_id as string }, is_ordered] as const,
    );
    await together(
      months.map(([first, is_ordered]) => (is_ordered ? correctTiersAfter(tx, first) : correctTiersIn(tx, first))),
    );
  }
}

interface Month {
  first: SaleDraft;
  last: SaleDraft;
  is_ordered: boolean;
  sales_count: number;
  revenue: Map<string, number>;
}

const monthOf = ({ partner_id, occurred_at }: SaleDraft): string => `${partner_id} ${occurred_at.slice(0, 7)}`;

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
  const [times, locked, found, unknown] = await together([
    lastSalesOf(tx, unique(named.map(({ customer }) => customer?.id))),
    tx.all<Partner>(sql`
      select ${partners.columns} from ${partners.from}
      where ${tenant(tx)} and t.id = any(${unique(named.flatMap(({ partner_id, coupon, customer }) => [partner_id, coupon?.partner_id, customer?.partner_id]))}) and ${partners.alive}
      order by t.id ${lockOf('share')} skip locked`),
    termsOf(
      tx,
      credited.map(({ program, customer, partner_id }) => ({
        ...{ program_id: program.id, partner_id: partner_id as string, customer_id: customer?.id },
        came_by: visitedBy(customer),
      })),
    ),
    namedBefore(tx, named),
  ]);
  const terms_of = new Map(credited.map((one, nth) => [one, found[nth] as Terms]));
  const facts = {
    partners: new Map(locked.map((partner) => [partner.id, partner])),
    ...{ times, payers: new Map(), payments: new Map(), named_before: unknown, months },
  };
  const decided: Recorded[] = [];
  for (const one of named) {
    const terms = terms_of.get(one);
    const isLeft = left.hasPayer(one) || (hasTiers(terms) && left.hasPartner(one));
    const outcome = isLeft ? undefined : await decideOne(tx, one, terms, facts);
    if (outcome) {
      note(one, outcome, facts);
      decided.push(outcome);
    } else left.add(one.body, one.key);
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
  { partners, times, payers, payments, named_before, months }: Facts,
): Promise<Recorded | undefined> {
  const { program, body, key, nth, request_id, partner_id } = one;
  const before = key === undefined ? undefined : payers.get(key);
  const customer = before?.customer ?? one.customer;
  const { refunded_at = null } = (one.customer && times.get(one.customer.id)) ?? {};
  const place = placeAfter(tx, body, customer, { ...times.get(one.customer?.id ?? ''), ...before });
  if (!place || (customer && !saysNothingNew(customer, body))) return undefined;
  const candidates = candidatesOf(one, customer, partners);
  if (!candidates) return undefined;
  const payer = customer ? { customer } : {};
  const credit = await creditBy(tx, program, body, { payer, as_of: payer, place, candidates });
  const { attribution } = credit;
  if (credit.own_purchase || attribution?.partner.id !== partner_id) return undefined;
  if (place.is_first_sale && attribution && program.auto_enrol_customers) return undefined;
  if (!customer && attribution && body.occurred_at !== undefined && key && named_before.has(key)) return undefined;
  const isLimited = terms?.rules.some(({ max_payments }) => max_payments !== null);
  if (isLimited && refunded_at !== null && refunded_at >= place.at) return undefined;
  try {
    const draft = draftOf(tx, body, credit, customer?.id ?? null, terms?.came_by ?? nothing_visited);
    const by = attribution && { partner: attribution.partner, first_sale_at: place.first_sale_at };
    const { unwritten, is_last } = months.before(draft);
    // A sale without a time counts those that are recorded before it, in whatever order.
    if (hasTiers(terms) && !is_last && body.occurred_at !== undefined) return undefined;
    const earning =
      by && terms && (await earnedBy(tx, program, draft, by, { ...paidBefore(terms, customer, payments), unwritten }));
    const decided = { program, body, payer, credit, draft, earning };
    const buyer = buyerOf(decided);
    const made =
      buyer && attribution && !customer
        ? customerRow(tx, program, attribution, fieldsOfNew(body, buyer.id, tx.now))
        : undefined;
    return { ...decided, item: { nth, body, request_id: request_id ?? null }, buyer, made };
  } catch (problem) {
    if (problem instanceof Problem) return undefined;
    throw problem;
  }
}

/** @returns undefined where a partner is another program's, deleted, or locked by somebody else */
function candidatesOf(
  { program, body, coupon }: Named,
  customer: Customer | undefined,
  partners: Map<string, Partner>,
): Possible | undefined {
  const named = body.partner_id === undefined ? undefined : partners.get(body.partner_id);
  const of_coupon = coupon && partners.get(coupon.partner_id);
  const of_customer = customer && partners.get(customer.partner_id);
  if ((body.partner_id !== undefined && named?.program_id !== program.id) || (coupon && !of_coupon)) return undefined;
  if (!named && customer && !of_customer) return undefined;
  return {
    named: named && namedBy(named),
    by_coupon: coupon && of_coupon && couponBy({ coupon_id: coupon.coupon_id, partner: of_coupon }, program),
    by_customer:
      named || !customer || !of_customer
        ? undefined
        : { partner: of_customer, tracked_by: customer.tracked_by, by: 'customer' },
  };
}

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
  const customer = { ...(payer.customer ?? asRecord(made ?? {})), ...credit.binding, ...defined(paid) } as Customer;
  payers.set(key, { customer, last_at: draft.occurred_at });
}

const asRecord = (row: object): object => ({
  ...Object.fromEntries(Object.keys(customers.record.shape).map((field) => [field, null])),
  ...defined(row),
});

const defined = (row: object): object =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
