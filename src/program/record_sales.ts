import sql from 'sql-template-tag';
import { type Tx, together } from '../core/postgres/transaction.ts';
import { type BulkItem, bulkOf } from '../core/resource/bulk.ts';
import { type Member, type Operation, readOperations } from '../core/resource/operation.ts';
import { lockOf, tenant } from '../core/resource/resource.ts';
import { Problem } from '../core/values/problem.ts';
import { saleChangeOperations } from './change_sale.ts';
import { commissionOf, commissions } from './commissions/commission.ts';
import { earnedBy, type Terms, termsOf } from './commissions/earn.ts';
import type { CommissionOutcome } from './commissions/rule_choice.ts';
import { type Customer, customers } from './customers/customer.ts';
import { deleteSaleOperations } from './delete_sale.ts';
import { decisionOf } from './earn_sale.ts';
import { event } from './events/event.ts';
import { explainSaleOperation } from './explain_sale.ts';
import { type Partner, partners } from './partners/partner.ts';
import { type Program, programs } from './programs/program.ts';
import { outcomeOf, recordSaleOperation, type SaleOutcome, saleList } from './record_sale.ts';
import { visitedBy } from './sales/came_by.ts';
import { lastSalesOf } from './sales/credit.ts';
import { chargesOf, knownCharge, lockCharges } from './sales/known_charge.ts';
import { draftOf, type NewSale, type SaleDraft } from './sales/new_sale.ts';
import { ownPurchaseBy } from './sales/own_purchase.ts';
import { saysNothingNew } from './sales/payer.ts';
import { sales } from './sales/sale.ts';

/** `request_id`: its own, where it shares a transaction with other requests. */
type Item = BulkItem<NewSale> & { request_id?: string | null };

/** A sale of a customer who is known. */
interface Named extends Item {
  program: Program;
  customer: Customer;
  partner_id: string;
}

interface Decided extends Pick<Item, 'nth' | 'request_id'> {
  draft: SaleDraft;
  program: Program;
  partner: Partner;
  earned: CommissionOutcome;
}

/** Sales that come together share a transaction, as far as they are recorded in sets. */
const recordSaleInSet: Operation = {
  ...recordSaleOperation,
  together: {
    ahead: (tx, members) => readNames(tx, itemsOf(members)),
    async run({ tx }, members, names) {
      const outcomes = await recordSales(tx, itemsOf(members), names as Names);
      return members.map((_, nth) => outcomes.get(nth));
    },
    leaves_one: true,
  },
};

const itemsOf = (members: Member<unknown>[]): Item[] =>
  members.map(({ body, request_id }, nth) => ({ nth, body: body as NewSale, request_id }));

export const saleOperations: Operation[] = [
  ...readOperations(saleList),
  explainSaleOperation,
  recordSaleInSet,
  bulkOf<NewSale>(recordSaleOperation, {
    noun: 'sale',
    summary: 'Records up to 1,000 sales and computes their commissions.',
    doc: 'For imports and for usage that is charged in batches.',
    inSets: async ({ tx }, items) => recordSales(tx, items, await readNames(tx, items)),
  }),
  ...saleChangeOperations,
  ...deleteSaleOperations,
];

/**
 * Records in sets the sales of customers who are known and have paid before, where nothing but what is read once decides who is credited and what
 * they earn. All others (first sales, coupons, clicks, own purchases, programs with tiers, and whatever is to be refused) are left to
 * record_sale.ts, and so are further sales of their customers, whose order counts.
 * @returns the outcomes, by their place
 */
async function recordSales(tx: Tx, items: Item[], names: Names): Promise<Map<number, SaleOutcome>> {
  const left = new Left();
  const decided = await decide(tx, await nameAll(tx, items, names, left), left);
  const paid = decided.flatMap(({ draft, program, earned }) =>
    earned.outcome === 'commission' ? [commissionOf(tx, program, draft, earned)] : [],
  );
  const [recorded, earned] = await together([
    sales.insertAll(
      tx,
      decided.map(({ draft }) => draft),
    ),
    commissions.insertAll(tx, paid),
  ]);
  const by_sale = new Map([...earned.values()].map((commission) => [commission.sale_id, commission]));
  return new Map(
    decided.map(({ nth, request_id, draft, partner, earned }) => {
      const cause = request_id ? { request_id } : {};
      const sale = recorded.get(draft.id);
      if (!sale) throw new Error('A sale that was inserted did not come back.');
      tx.emit({ ...event('sale.created', sale, { partner_id: partner.id }), ...cause });
      const commission = by_sale.get(sale.id);
      if (commission) tx.emit({ ...event('commission.created', commission), ...cause });
      return [
        nth,
        outcomeOf(sale, commission ? [commission] : [], earned.outcome === 'none' ? earned.warning : undefined),
      ];
    }),
  );
}

const keyOf = (program_id: string, external_id: string): string => `${program_id} ${external_id}`;

/** The customers whose sales are not recorded in sets: those that the remaining sales name, or might. */
class Left {
  readonly #names = new Set<string>();

  /** @returns none: the sale is left */
  add({ program_id, customer_id, external_customer_id, click_id }: NewSale): [] {
    if (customer_id !== undefined) this.#names.add(customer_id);
    if (external_customer_id !== undefined) this.#names.add(keyOf(program_id, external_customer_id));
    if (click_id !== undefined) this.#names.add(program_id);
    return [];
  }

  has({ id, program_id, external_customer_id }: Customer): boolean {
    return [id, program_id, keyOf(program_id, external_customer_id ?? '')].some((name) => this.#names.has(name));
  }
}

const isPlain = ({ click_id, coupon_external_id, customer_id, external_customer_id }: NewSale): boolean =>
  click_id === undefined &&
  coupon_external_id === undefined &&
  (customer_id === undefined) !== (external_customer_id === undefined);

type Names = Awaited<ReturnType<typeof readNames>>;

/** The programs, the charges that are recorded or known otherwise, and whom the processor's ids name. */
function readNames(tx: Tx, items: Item[]) {
  const charges = items.map(({ body }) => body);
  const program_ids = charges.map(({ program_id }) => program_id);
  const external = items.filter(({ body }) => body.external_customer_id !== undefined);
  return together([
    programs.byIds(tx, [...new Set(program_ids)]),
    lockCharges(tx, charges),
    tx.all<{ program_id: string; external_charge_id: string }>(sql`
      select g.program_id, g.charge as external_charge_id
      from ${chargesOf(charges)}
      join program.sale t on ${tenant(tx)} and t.program_id = g.program_id and t.external_charge_id = g.charge and ${sales.alive}
      union all
      select g.program_id, g.charge from ${chargesOf(charges)} join ${knownCharge(tx)}`),
    tx.all<{ id: string; program_id: string; external_customer_id: string }>(sql`
      select t.id, t.program_id, t.external_customer_id
      from unnest(
        ${external.map(({ body }) => body.program_id)}::text[], ${external.map(({ body }) => body.external_customer_id)}::text[]
      ) as g (program_id, external_id)
      join program.customer t on ${tenant(tx)} and t.program_id = g.program_id and t.external_customer_id = g.external_id and ${customers.alive}`),
  ]);
}

/**
 * The customers and the programs, without the charges that are recorded, or come twice. A customer whom somebody else has locked is left: one
 * sale waits for that, and not all.
 */
async function nameAll(
  tx: Tx,
  items: Item[],
  [known_programs, , charges, by_external_id]: Names,
  left: Left,
): Promise<Named[]> {
  const ids = [...items.flatMap(({ body }) => body.customer_id ?? []), ...by_external_id.map(({ id }) => id)];
  const locked = await tx.all<Customer>(sql`
    select ${customers.columns} from ${customers.from}
    where ${tenant(tx)} and t.id = any(${[...new Set(ids)]}) and ${customers.alive} order by t.id ${lockOf(true)} skip locked`);
  const by_program = new Map(known_programs.map((program) => [program.id, program as unknown as Program]));
  const by_id = new Map(locked.map((customer) => [customer.id, customer]));
  const by_external = new Map(
    locked.map((customer) => [keyOf(customer.program_id, customer.external_customer_id ?? ''), customer]),
  );
  const taken = new Set(charges.map((charge) => keyOf(charge.program_id, charge.external_charge_id)));
  return items.flatMap((item) => {
    const { body } = item;
    const charge = keyOf(body.program_id, body.external_charge_id);
    const program = by_program.get(body.program_id);
    const customer =
      body.customer_id === undefined
        ? by_external.get(keyOf(body.program_id, body.external_customer_id ?? ''))
        : by_id.get(body.customer_id);
    const isTaken = taken.has(charge);
    taken.add(charge);
    if (isTaken || !isPlain(body) || !program || customer?.program_id !== program.id) return left.add(body);
    if (left.has(customer) || !saysNothingNew(customer, body)) return left.add(body);
    return [{ ...item, program, customer, partner_id: body.partner_id ?? customer.partner_id }];
  });
}

const later = (at: string, by_ms: number): string => new Date(Date.parse(at) + by_ms).toISOString();

async function decide(tx: Tx, named: Named[], left: Left): Promise<Decided[]> {
  if (named.length === 0) return [];
  const [times, locked, terms_of_all] = await together([
    lastSalesOf(tx, [...new Set(named.map(({ customer }) => customer.id))]),
    tx.all<Partner>(sql`
      select ${partners.columns} from ${partners.from}
      where ${tenant(tx)} and t.id = any(${[...new Set(named.map(({ partner_id }) => partner_id))]}) and ${partners.alive}
      order by t.id ${lockOf('share')} skip locked`),
    termsOf(
      tx,
      named.map(({ program, customer, partner_id }) => ({
        ...{ program_id: program.id, partner_id, customer_id: customer.id },
        came_by: visitedBy(customer),
      })),
    ),
  ]);
  const by_id = new Map(locked.map((partner) => [partner.id, partner]));
  const last_of = new Map<string, string>();
  const decided: Decided[] = [];
  for (const [nth, one] of named.entries()) {
    const { customer, body } = one;
    const terms = terms_of_all[nth] as Terms;
    const { last_at = '', refunded_at = null } = times.get(customer.id) ?? {};
    const first_sale_at = customer.converted_at;
    const partner = by_id.get(one.partner_id);
    const last = [last_at, last_of.get(customer.id) ?? ''].sort().at(-1) as string;
    const at = body.occurred_at ?? (last < tx.now ? tx.now : later(last, 1));
    const isAlone =
      (!last_of.has(customer.id) && (refunded_at === null || refunded_at < at)) ||
      terms.rules.every(({ max_payments }) => max_payments === null);
    // At the same millisecond the ids of the charges decide, which record_sale.ts compares.
    const isFurther =
      first_sale_at !== null && at > last && (body.occurred_at !== undefined || last < later(tx.now, 1_000));
    const outcome =
      partner && isFurther && isAlone && !left.has(customer)
        ? await decideOne(tx, one, { partner, first_sale_at, at }, terms)
        : undefined;
    last_of.set(customer.id, at);
    if (outcome) decided.push({ nth: one.nth, request_id: one.request_id, program: one.program, ...outcome });
    else left.add(body);
  }
  return decided;
}

/** @returns undefined for what is left: it is to be refused, the partner's own, or depends on the partner's month */
async function decideOne(
  tx: Tx,
  { body, program, customer }: Named,
  { partner, first_sale_at, at }: { partner: Partner; first_sale_at: string; at: string },
  terms: Terms,
): Promise<Pick<Decided, 'draft' | 'partner' | 'earned'> | undefined> {
  if (partner.program_id !== program.id || terms.rules.some(({ tiers }) => tiers.length > 0)) return undefined;
  if (await ownPurchaseBy(tx, program, partner, { email: customer.email })) return undefined;
  try {
    const by = body.partner_id === undefined ? ('customer' as const) : ('partner_id' as const);
    const attribution = { partner, tracked_by: customer.tracked_by, by };
    const draft = draftOf(tx, body, { attribution, place: { at, is_first_sale: false } }, customer.id, terms.came_by);
    const earning = await earnedBy(tx, program, draft, { partner, first_sale_at }, terms);
    const decision = decisionOf({ attribution, candidates: { [by]: partner.id } }, earning);
    return { draft: { ...draft, decision }, partner, earned: earning.outcome };
  } catch (problem) {
    if (problem instanceof Problem) return undefined;
    throw problem;
  }
}
