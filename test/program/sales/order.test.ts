import fc from 'fast-check';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { as_before, correctLaterSales } from '../../../src/program/late_sale.ts';
import { foldTallies } from '../../../src/program/programs/tally.ts';
import { placeIn } from '../../../src/program/sales/decision.ts';
import type { Sale } from '../../../src/program/sales/sale.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { effort, seeded } from '../../runner/effort.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail();
const merchant = await rail.organization();

const day_ms = 86_400_000;
const days = 100;
const began = Date.now() - (days + 20) * day_ms;
const onDay = (day: number): string => new Date(began + day * day_ms).toISOString();

/** The events of a story, in days. A refund is of the sale at its place. */
const aSale = fc.record({
  do: fc.constant('sale' as const),
  customer: fc.nat(2),
  day: fc.nat(days),
  coupon: fc.option(fc.nat(1), { freq: 2 }),
  partner: fc.option(fc.nat(1), { freq: 6 }),
  amount: fc.integer({ min: 1_000, max: 90_000 }),
  refund: fc.option(fc.record({ after: fc.nat(15), part: fc.constantFrom(1, 0.4) }), { freq: 2 }),
});
const story = fc.array(aSale, { minLength: 2, maxLength: 9 });
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

interface Step {
  nth: number;
  at: number;
  do: 'sale' | 'refund';
}

/** Steps in the order of time; of the same time sales by their charge, then refunds. */
const inOrder = (sales: Story): Step[] =>
  sales
    .flatMap(({ day, refund }, nth): Step[] => [
      { nth, at: day, do: 'sale' },
      ...(refund ? [{ nth, at: day + refund.after, do: 'refund' as const }] : []),
    ])
    .sort((a, b) => a.at - b.at || (a.do === b.do ? a.nth - b.nth : a.do === 'sale' ? -1 : 1));

/** The same steps in an order of arrival: a refund comes after its sale. */
function arriving(steps: Step[], keys: number[]): Step[] {
  const by_key = steps.map((step, at) => ({ step, key: keys[at] ?? 0 })).sort((a, b) => a.key - b.key);
  const sales = by_key.filter(({ step }) => step.do === 'sale').map(({ step }) => step);
  const arrived: Step[] = [];
  for (const { step } of by_key) {
    if (step.do === 'refund') arrived.push(...sales.filter((sale) => sale.nth === step.nth && !arrived.includes(sale)));
    if (!arrived.includes(step)) arrived.push(step);
  }
  return arrived;
}

interface Place {
  shop: Shop;
  partners: Json[];
  coupons: Json[];
}

const rules = [
  { name: 'Bonus', applies_to: 'first', rate_type: 'fixed', rate_value: 500, priority: 10 },
  { name: 'Early', max_payments: 2, rate_value: 3_000, priority: 5 },
  { name: 'Renewals', applies_to: 'renewals', duration_months: 2, rate_value: 1_500, priority: 3 },
  {
    name: 'Tiers',
    rate_value: 1_000,
    tier_metric: 'sales_count',
    tiers: [
      { from: 2, rate_value: 1_200 },
      { from: 4, rate_value: 1_700 },
    ],
  },
];

async function openPlace(): Promise<Place> {
  const shop = await openShop(rail, {}, merchant);
  for (const rule of rules) await shop.rule(rule);
  const partners = [await shop.partner(), await shop.partner()];
  const coupons: Json[] = [];
  for (const partner of partners) coupons.push(await shop.coupon({ partner_id: partner.id }));
  await shop.customer({ partner_id: partners[0]?.id, external_customer_id: 'customer-0' });
  return { shop, partners, coupons };
}

async function play({ shop, partners, coupons }: Place, sales: Story, steps: Step[]): Promise<void> {
  const recorded = new Map<number, Json>();
  for (const { nth, at, do: what } of steps) {
    const { customer, coupon, partner, amount, refund } = sales[nth] as Story[number];
    if (what === 'sale') {
      const sale = await shop.sale({
        ...{ external_charge_id: `charge-${nth}`, external_customer_id: `customer-${customer}` },
        ...{ amount_minor: amount, occurred_at: onDay(at) },
        ...(coupon === null ? {} : { coupon_external_id: coupons[coupon]?.external_id }),
        ...(partner === null ? {} : { partner_id: partners[partner]?.id }),
      });
      recorded.set(nth, sale);
    } else {
      const amount_minor = Math.ceil(amount * (refund?.part ?? 1));
      await shop.refund(recorded.get(nth) as Json, { amount_minor, refunded_at: onDay(at) });
    }
  }
  await corrected();
}

const corrected = () =>
  eventually(async () => {
    const [left] = await rail.query(sql`
      select from graphile_worker.jobs where task_identifier in ('program/correct_later_sales', 'program/correct_tiers') limit 1`);
    return left === undefined;
  }, 'the correction of later sales');

/** The ledger of a program, in names that are the same in another one. */
async function ledgerOf({ shop, partners }: Place): Promise<Json> {
  const partnerName = (id: string | null) => partners.findIndex((partner) => partner.id === id);
  const ruleName = new Map((await shop.list('rules')).map(({ id, name }) => [id, name]));
  const commissions = await shop.list('commissions');
  const sales = await shop.list('sales');
  const customers = await shop.list('customers');
  return {
    ...Object.fromEntries(
      sales
        .sort((a, b) => (a.external_charge_id < b.external_charge_id ? -1 : 1))
        .map((sale) => [
          sale.external_charge_id,
          {
            ...{
              partner: partnerName(sale.partner_id),
              is_first_sale: sale.is_first_sale,
              refunded: sale.refunded_minor,
            },
            ...{ status: sale.status, has_coupon: sale.coupon_id !== null, has_customer: sale.customer_id !== null },
            commissions: commissions
              .filter(({ sale_id, status }) => sale_id === sale.id && status !== 'voided')
              .map(({ kind, amount_minor, rule_id, rate_value, status, partner_id, base_amount_minor }) => ({
                ...{ kind, amount_minor, rule: ruleName.get(rule_id), rate_value, status, base_amount_minor },
                partner: partnerName(partner_id),
              })),
          },
        ]),
    ),
    ...Object.fromEntries(
      customers
        .sort((a, b) => (a.external_customer_id < b.external_customer_id ? -1 : 1))
        .map(({ external_customer_id, partner_id, tracked_by, coupon_id, converted_at }) => [
          external_customer_id,
          { partner: partnerName(partner_id), tracked_by, has_coupon: coupon_id !== null, converted_at },
        ]),
    ),
  };
}

const differencesOf = (expected: Json, found: Json): string[] =>
  Object.keys({ ...expected, ...found })
    .filter((name) => JSON.stringify(expected[name]) !== JSON.stringify(found[name]))
    .map((name) => `${name} is ${JSON.stringify(found[name])}, in the order of time ${JSON.stringify(expected[name])}`);

t.test('any order of arrival leads to the ledger of the order of time', async () => {
  await fc.assert(
    fc.asyncProperty(
      story,
      fc.array(fc.double({ noNaN: true }), { minLength: 18, maxLength: 18 }),
      async (sales, keys) => {
        const steps = inOrder(sales);
        const [in_order, shuffled] = [await openPlace(), await openPlace()];
        await play(in_order, sales, steps);
        await play(shuffled, sales, arriving(steps, keys));
        const [expected, found] = [await ledgerOf(in_order), await ledgerOf(shuffled)];
        const differing = differencesOf(expected, found);
        if (differing.length > 0) throw new Error(`The order of arrival decided: ${differing.join('; ')}`);
      },
    ),
    { ...seeded, numRuns: effort.order_runs },
  );
});

/** A program whose customers' first sales earn a bonus of 5.00, and further ones 20 %. */
async function openBonus(): Promise<{
  shop: Shop;
  partner: Json;
  buys: (day: number, fields?: Json) => Promise<Json>;
}> {
  const shop = await openShop(rail, {}, merchant);
  await shop.rule();
  await shop.rule({ name: 'Bonus', applies_to: 'first', rate_type: 'fixed', rate_value: 500, priority: 10 });
  const partner = await shop.partner();
  const customer = await shop.customer({ partner_id: partner.id });
  const buys = (day: number, fields?: Json) =>
    shop.sale({ customer_id: customer.id, occurred_at: onDay(day), ...fields });
  return { shop, partner, buys };
}

const earnedBy = async (shop: Shop, sale: Json): Promise<number[]> =>
  (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor);

t.test('a payment that is refunded later counts, also where it is decided anew after that', async (t) => {
  const { shop, buys } = await openBonus();
  await shop.rule({ name: 'Early', max_payments: 2, rate_value: 3_000, priority: 5 });
  const second = await buys(10);
  await shop.refund(second, { refunded_at: onDay(40) });
  await buys(5);
  await corrected();
  t.strictSame(await earnedBy(shop, await buys(20)), [3_000]);
  t.strictSame(await earnedBy(shop, await buys(30)), [2_000], 'Early has paid twice');
});

t.test('a late first sale ends that a coupon counts, also one of the same partner', async (t) => {
  const { shop, partner, buys } = await openBonus();
  const { external_id: coupon_external_id } = await shop.coupon({ partner_id: partner.id });
  const later = await buys(10, { coupon_external_id });
  await buys(5);
  await corrected();
  t.match(await shop.merchant.get(`/v1/sales/${later.id}`), { coupon_id: null, partner_id: partner.id });
});

t.test('a late first sale takes the bonus of a later one, and events say so', async (t) => {
  const { shop, buys } = await openBonus();
  const later = await buys(10);
  await shop.events();
  const late = await buys(5);
  await corrected();
  t.match(late, { is_first_sale: true, commissions: [{ amount_minor: 500 }] });
  t.match(await shop.merchant.get(`/v1/sales/${later.id}`), { is_first_sale: false });
  t.strictSame(await earnedBy(shop, later), [2_000]);
  t.strictSame(
    (await shop.events()).map(({ type, data }) => [
      type,
      data.sale_id === late.id ? 'late' : 'later',
      data.amount_minor,
    ]),
    [
      ['sale.updated', 'later', 10_000],
      ['sale.created', 'late', 10_000],
      ['commission.created', 'late', 500],
      ['commission.deleted', 'later', undefined],
      ['commission.created', 'later', 2_000],
    ],
  );
  const again = { customer_id: late.customer_id, after: placeIn(late as Sale), ...as_before };
  const { organization_id } = shop.merchant;
  await transaction(rail.store, { organization_id, request_id: null }, async (tx) => correctLaterSales(tx, again));
  await corrected();
  t.strictSame(await shop.events(), [], 'the job does nothing twice');
});

t.test('what is paid, in a payout or changed by hand stays, and the late sale is a further one', async (t) => {
  const settlements: Record<string, (shop: Shop, commission: Json) => Promise<unknown>> = {
    paid: (shop, commission) => shop.pay(commission),
    'in a payout': (shop, commission) => shop.lock(commission),
    'changed by hand': (shop, { id }) => shop.merchant.patch(`/v1/commissions/${id}`, { amount_minor: 700 }),
  };
  for (const [name, settle] of Object.entries(settlements)) {
    const { shop, buys } = await openBonus();
    const first = await buys(10);
    await settle(shop, first.commissions[0]);
    const before = await shop.commissionsOf(first);
    const late = await buys(5);
    await corrected();
    t.match(late, { is_first_sale: false, commissions: [{ amount_minor: 2_000 }] }, name);
    t.match(await shop.merchant.get(`/v1/sales/${first.id}`), { is_first_sale: true }, name);
    t.strictSame(await shop.commissionsOf(first), before, name);
  }
});

t.test('a rule that was changed since does not change what later sales earned', async (t) => {
  const { shop, buys } = await openBonus();
  await buys(1);
  const later = await buys(10);
  for (const rule of await shop.list('rules')) await shop.merchant.patch(`/v1/rules/${rule.id}`, { rate_value: 100 });
  await buys(5);
  await corrected();
  t.strictSame(await earnedBy(shop, later), [2_000]);
});

t.test("a sale before the customer was known is nobody's, unless it names a partner", async (t) => {
  const shop = await openShop(rail, {}, merchant);
  await shop.rule();
  const partner = await shop.partner();
  const other = await shop.partner();
  const of = { external_customer_id: 'late' };
  const maker = await shop.sale({ ...of, partner_id: partner.id, occurred_at: onDay(10) });
  const earlier = await shop.sale({ ...of, occurred_at: onDay(9) });
  t.match(earlier, { customer_id: null, partner_id: null, warnings: [{ code: 'no_partner_attributed' }] });
  const named = await shop.sale({ ...of, partner_id: other.id, occurred_at: onDay(8) });
  await corrected();
  t.match(named, { customer_id: maker.customer_id, partner_id: other.id, is_first_sale: true });
  t.match(await shop.merchant.get(`/v1/customers/${maker.customer_id}`), { partner_id: other.id });
  t.match(await shop.merchant.get(`/v1/sales/${maker.id}`), { partner_id: partner.id, is_first_sale: false });
});

t.test('sales without a time come in the order in which they arrive', async (t) => {
  const { buys } = await openBonus();
  const [first, ...others] = await Promise.all(Array.from({ length: 6 }, () => buys(0, { occurred_at: undefined })));
  const all = [first, ...others] as Json[];
  t.equal(all.filter(({ is_first_sale }) => is_first_sale).length, 1);
  t.equal(new Set(all.map(({ occurred_at }) => occurred_at)).size, all.length, 'a millisecond apart');
});

t.test('many sales in one request are recorded by their times too', async (t) => {
  const { shop, buys } = await openBonus();
  const known = await buys(50);
  const list = [60, 40, 70, 55].map((day) => ({
    ...{ program_id: shop.program_id, customer_id: known.customer_id, external_charge_id: `bulk-${day}` },
    ...{ amount_minor: 10_000, currency: 'USD', occurred_at: onDay(day) },
  }));
  const { data } = await shop.merchant.post('/v1/sales/bulk', list);
  await corrected();
  t.ok(data.every(({ status }: Json) => status === 201));
  const earned = await Promise.all(
    (await shop.list('sales')).map(async (sale) => [sale.occurred_at, ...(await earnedBy(shop, sale))]),
  );
  t.strictSame(earned.sort(), [[onDay(40), 500], ...[50, 55, 60, 70].map((day) => [onDay(day), 2_000])]);
});

/** The events of a month, to the sale at a place among those made so far. */
const inMonth = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      ...{
        do: fc.constant('sale' as const),
        partner: fc.nat(1),
        day: fc.nat(40),
        currency: fc.constantFrom('USD', 'EUR'),
      },
      amount_minor: fc.integer({ min: 1, max: 90_000 }),
    }),
  },
  fc.record({ do: fc.constant('correct' as const), nth: fc.nat(9), amount_minor: fc.integer({ min: 1, max: 90_000 }) }),
  fc.record({ do: fc.constant('move' as const), nth: fc.nat(9), partner: fc.nat(1) }),
  fc.record({ do: fc.constantFrom('delete' as const, 'refund' as const, 'dispute' as const), nth: fc.nat(9) }),
  fc.record({ do: fc.constant('fold' as const), most: fc.nat(9) }),
);

t.test("a partner's month counts the sales before one, whatever was corrected, moved, deleted and folded", async () => {
  const at = (day: number) => new Date(Date.UTC(2025, 4, 1 + day, 12)).toISOString();
  await fc.assert(
    fc.asyncProperty(fc.array(inMonth, { minLength: 4, maxLength: 14 }), async (steps) => {
      const shop = await openShop(rail, {}, merchant);
      await shop.rule({ tier_metric: 'revenue_minor', tiers: [{ from: 1, rate_value: 1_000 }] });
      const partners = [await shop.partner(), await shop.partner()] as [Json, Json];
      const made: Json[] = [];
      const sells = async (partner: number, fields: Json) => {
        const sale = await shop.sale({ partner_id: partners[partner]?.id, ...fields });
        const { month_before } = await shop.merchant.get(`/v1/sales/${sale.id}/explanation`);
        const [recounted] = await rail.query(sql`
          select count(*)::integer as sales_count, coalesce(sum(t.amount_minor) filter (where t.currency = s.currency), 0)::bigint as revenue_minor
          from program.sale s
          left join program.sale t on t.partner_id = s.partner_id and t.deleted_at is null
            and date_trunc('month', t.occurred_at, 'UTC') = date_trunc('month', s.occurred_at, 'UTC')
            and (t.occurred_at, t.external_charge_id collate "C") < (s.occurred_at, s.external_charge_id)
          where s.id = ${sale.id} and t.id is not null`);
        if (JSON.stringify(month_before) !== JSON.stringify(recounted))
          throw new Error(`${JSON.stringify(month_before)} before the sale, there are ${JSON.stringify(recounted)}`);
        made.push(sale);
      };
      for (const step of steps) {
        if (step.do === 'sale') {
          const { amount_minor, currency, day } = step;
          await sells(step.partner, { amount_minor, currency, occurred_at: at(day) });
        } else if (step.do === 'fold')
          await transaction(rail.store, { organization_id: null, request_id: null }, (tx) =>
            foldTallies(tx, step.most),
          );
        else await changes(shop, made[step.nth]?.id, partners, step);
      }
      await corrected();
      for (const partner of [0, 1]) for (const day of [15, 35]) await sells(partner, { occurred_at: at(day) });
    }),
    { ...seeded, numRuns: effort.order_runs },
  );
});

/** Goes on after what is refused, such as a second dispute, which changes nothing. */
async function changes({ merchant }: Shop, id: string | undefined, partners: Json[], step: Json): Promise<void> {
  if (!id) return;
  const path = `/v1/sales/${id}`;
  const { status, text } = await {
    correct: () => merchant.request('PATCH', path, { amount_minor: step.amount_minor }),
    move: () => merchant.request('PATCH', path, { partner_id: partners[step.partner]?.id }),
    delete: () => merchant.request('DELETE', path),
    refund: () => merchant.request('POST', `${path}/refund`, {}),
    dispute: () => merchant.request('POST', '/v1/disputes', { sale_id: id, external_dispute_id: `dispute-${id}` }),
  }[step.do as 'correct' | 'move' | 'delete' | 'refund' | 'dispute']();
  if (status >= 500) throw new Error(text);
}
