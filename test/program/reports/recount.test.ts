import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldReports } from '../../../src/program/reports/sums/fold.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { effort, seeded } from '../../runner/effort.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';
import { dayOf, factsOf, labelOf, rows_of, rowsOf, startOfDay, totalsOf } from './recount.ts';

/** No worker: what jobs do would happen between a report and its recount. */
const rail = await startRail({ worker: false });

const zones = ['UTC', 'America/New_York', 'Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Lord_Howe'];
/** Around the days on which clocks change in America and on Lord Howe, in the year before. */
const first_day = '2025-10-01';
const days = 60;
const hour_ms = 3_600_000;

const service = { organization_id: null, request_id: null };
const fold = (most: number): Promise<number> => transaction(rail.store, service, (tx) => foldReports(tx, most));

/** One step of a history: what is done, to whom, by how much, and when (in quarters of an hour from the first day, and some more). */
const step = fc.record({
  act: fc.nat(19),
  a: fc.nat(1000),
  b: fc.nat(1000),
  amount: fc.integer({ min: 0, max: 50_000 }),
  at: fc.integer({ min: 0, max: days * 96 }),
  extra_ms: fc.constantFrom(0, 0, 1, 899_999, 400_000),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const timeOf = ({ at, extra_ms }: Step): string =>
  new Date(Date.parse(`${first_day}T00:00:00Z`) + at * 900_000 + extra_ms).toISOString();

interface World {
  shop: Shop;
  partners: Json[];
  links: Json[];
  coupons: Json[];
  groups: Json[];
  customers: Json[];
  sales: Json[];
}

async function openWorld(): Promise<World> {
  const shop = await openShop(rail);
  await shop.rule();
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  const groups = [await shop.merchant.post('/v1/groups', { program_id: shop.program_id, name: fresh('group') })];
  return {
    shop,
    partners,
    groups,
    links: [await shop.link(partners[0] as Json), await shop.link(partners[1] as Json)],
    coupons: [await shop.coupon({ partner_id: partners[0]?.id }), await shop.coupon({ partner_id: partners[2]?.id })],
    customers: [],
    sales: [],
  };
}

const pick = <T>(list: T[], nth: number): T | undefined => list[nth % list.length];
const countries = [undefined, 'DE', 'US'];
const pages = ['https://acme.example.com/', 'https://acme.example.com/pricing?x=1#y', 'https://acme.example.com/a/b'];
const products = [undefined, 'pro', 'team'];
const currencies = ['USD', 'USD', 'EUR'];

/** A click in the past: they are recorded when they are made, so that only SQL can. */
async function clickAt({ shop, partners, links }: World, { a, b, ...step }: Step): Promise<void> {
  const at = timeOf({ a, b, ...step });
  const link = a % 3 === 0 ? pick(links, b) : undefined;
  await rail.query(sql`
    insert into program.click (organization_id, id, program_id, partner_id, link_id, param, value, landing_url, visitor_token, country, attributed_at, created_at)
    values (${shop.merchant.organization_id}, 'clk_' || core.id_time_part(${at}::timestamptz) || right(core.new_id('x'), 16), ${shop.program_id},
      ${link?.partner_id ?? pick(partners, b)?.id}, ${link?.id ?? null}, 'ref', 'x', ${pick(pages, a)}, ${fresh('token')}, ${pick(countries, b) ?? null}, now(), ${at}::timestamptz)`);
}

async function signUp(world: World, step: Step): Promise<void> {
  const { shop, links, partners } = world;
  const link = step.a % 2 === 0 ? pick(links, step.b) : undefined;
  const country = pick(countries, step.a);
  const click = await shop.merchant.request('POST', '/v1/clicks', {
    program_id: shop.program_id,
    value: link?.value ?? pick(partners, step.b)?.handle,
    landing_url: pick(pages, step.b),
    visitor_token: fresh('visitor'),
    ...(country ? { country } : {}),
  });
  if (click.status !== 201) return;
  const customer = await shop.merchant.request('POST', '/v1/customers', {
    program_id: shop.program_id,
    click_id: click.body.id,
  });
  if (customer.status !== 201) return;
  world.customers.push(customer.body);
  const at = timeOf(step);
  await rail.query(sql`update program.customer set lead_at = ${at}::timestamptz where id = ${customer.body.id}`);
  if (step.amount % 2 === 0)
    await rail.query(
      sql`update program.referral set created_at = ${at}::timestamptz where id = ${customer.body.referral_id}`,
    );
}

async function sell(world: World, step: Step): Promise<void> {
  const { shop, customers, coupons, partners } = world;
  const buyer = pick(customers, step.a);
  const who = [
    buyer ? { customer_id: buyer.id } : {},
    { partner_id: pick(partners, step.a)?.id },
    { coupon_external_id: pick(coupons, step.a)?.external_id, customer: { external_customer_id: fresh('payer') } },
    {},
  ][step.b % 4];
  const product_id = pick(products, step.amount);
  const { status, body } = await shop.merchant.request('POST', '/v1/sales', {
    program_id: shop.program_id,
    amount_minor: step.amount,
    currency: pick(currencies, step.b),
    external_charge_id: fresh('charge'),
    occurred_at: timeOf(step),
    ...(product_id ? { product_id } : {}),
    ...who,
  });
  if (status === 201) world.sales.push(body);
}

/** The steps of a history. A step that the service refuses changes nothing. */
const acts: ((world: World, step: Step) => Promise<unknown>)[] = [
  clickAt,
  clickAt,
  clickAt,
  signUp,
  signUp,
  sell,
  sell,
  sell,
  ({ shop, sales }, step) =>
    shop.merchant.request('POST', `/v1/sales/${pick(sales, step.a)?.id}/refund`, {
      ...(step.b % 2 === 0 ? {} : { amount_minor: 1 + (step.amount % 500) }),
      refunded_at: timeOf(step),
    }),
  ({ shop, sales, partners }, { a, b }) =>
    shop.merchant.request('PATCH', `/v1/sales/${pick(sales, a)?.id}`, { partner_id: pick(partners, b)?.id }),
  ({ shop, sales }, { a, b, amount }) =>
    shop.merchant.request('PATCH', `/v1/sales/${pick(sales, a)?.id}`, {
      amount_minor: amount,
      product_id: pick(products, b) ?? null,
    }),
  ({ shop, sales }, { a }) => shop.merchant.request('DELETE', `/v1/sales/${pick(sales, a)?.id}`),
  async ({ shop }, step) => {
    const commission = pick(await shop.list('commissions'), step.a);
    if (!commission || ['voided', 'rejected'].includes(commission.status)) return;
    await shop.pay(commission);
    await rail.query(
      sql`update program.commission set paid_at = ${timeOf(step)}::timestamptz where id = ${commission.id}`,
    );
  },
  async ({ shop }, { a, b, amount }) => {
    const commission = pick(await shop.list('commissions'), a);
    const path = `/v1/commissions/${commission?.id}`;
    if (b % 3 === 0) return shop.merchant.request('POST', `${path}/void`, {});
    if (b % 3 === 1) return shop.merchant.request('DELETE', path);
    return shop.merchant.request('PATCH', path, { amount_minor: 1 + amount });
  },
  async ({ shop, partners }, step) => {
    const partner_id = pick(partners, step.a)?.id;
    const fields = { program_id: shop.program_id, partner_id, amount_minor: 1 + step.amount };
    const { status, body } = await shop.merchant.request('POST', '/v1/commissions', fields);
    if (status === 201)
      await rail.query(
        sql`update program.commission set created_at = ${timeOf(step)}::timestamptz where id = ${body.id}`,
      );
  },
  async ({ shop, groups, partners }, { a, b }) => {
    if (b % 4 === 0)
      groups.push(await shop.merchant.post('/v1/groups', { program_id: shop.program_id, name: fresh('group') }));
    if (b % 4 === 1) return shop.merchant.request('DELETE', `/v1/groups/${pick(groups, a)?.id}`);
    return shop.merchant.request('PATCH', `/v1/partners/${pick(partners, a)?.id}`, { group_id: pick(groups, b)?.id });
  },
  async ({ shop, customers, partners }, { a, b }) => {
    const path = `/v1/customers/${pick(customers, a)?.id}`;
    if (b % 5 === 0) return shop.merchant.request('DELETE', path);
    return shop.merchant.request('PATCH', path, { partner_id: pick(partners, b)?.id });
  },
  async ({ shop }, { a }) =>
    shop.merchant.request('DELETE', `/v1/referrals/${pick(await shop.list('referrals'), a)?.id}`),
  ({ shop, partners }, { a, b }) =>
    b % 4 === 0 ? shop.merchant.request('DELETE', `/v1/partners/${pick(partners, a)?.id}`) : Promise.resolve(),
  (_, { amount }) => fold(1 + (amount % 40)),
];

interface Window {
  from: string;
  to: string;
  before: string;
}

/** From midnight to midnight in the zone, or to any time, and the window before it. */
function windowOf(zone: string, first: number, length: number, extra_ms: number): Window {
  const day = (nth: number) =>
    new Date(Date.parse(`${first_day}T00:00:00Z`) + nth * 24 * hour_ms).toISOString().slice(0, 10);
  const from = startOfDay(day(first), zone);
  const to = startOfDay(day(first + length), zone) + extra_ms;
  const before = extra_ms === 0 ? startOfDay(day(first - length), zone) : from - (to - from);
  return { from: iso(from), to: iso(to), before: iso(before) };
}

const iso = (time: number): string => new Date(time).toISOString();
const within = (facts: Awaited<ReturnType<typeof factsOf>>, from: string, to: string) =>
  facts.filter(({ at }) => at >= Date.parse(from) && at < Date.parse(to));

const seed = () => (process.env.RECOUNT_SEED ? { seed: Number(process.env.RECOUNT_SEED) } : seeded);

type Facts = Awaited<ReturnType<typeof factsOf>>;
interface Asked {
  report: string;
  zone: string;
  window: Window;
  interval: string;
  drills: boolean;
}
type Test = Parameters<Parameters<typeof t.test>[0]>[0];

async function equalsRecount(t: Test, { shop }: World, facts: Facts, asked: Asked): Promise<void> {
  const { report, zone, window, interval } = asked;
  const where = `program_id=${shop.program_id}&from=${window.from}&to=${window.to}&timezone=${zone}&interval=${interval}`;
  const given = await shop.merchant.get(`/v1/reports?report=${report}&${where}`);
  const now = within(facts, window.from, window.to);
  const before = within(facts, window.before, window.from);
  const expect = (what: string, found: unknown, wanted: unknown) => {
    if (isDeepStrictEqual(found, wanted)) return;
    t.same(found, wanted, `${report} in ${zone}: ${what}`);
    throw new Error(`${report} in ${zone}: ${what}`);
  };
  expect('totals', given.totals, totalsOf(now, report, 'USD'));
  expect('the window before', given.previous_period.from, window.before);
  expect('totals before', given.previous_period.totals, totalsOf(before, report, 'USD'));
  for (const [metric, { change_bps, ...difference }] of Object.entries<Json>(given.delta)) {
    const [is, was] = [given.totals[metric], given.previous_period.totals[metric]];
    expect(`delta of ${metric}`, Object.values(difference), [is - was]);
    expect(`change of ${metric}`, change_bps, was === 0 ? null : away(((is - was) * 10_000) / Math.abs(was)));
  }
  const rows = report === 'overview' ? periods(now, asked) : rowsOf(now, report, 'USD');
  const { field } = given.drill_down_config;
  const keys = new Map(given.rows.map((row: Json) => [row[field], metricsOf(row, given.totals)]));
  expect('rows', Object.fromEntries(keys), Object.fromEntries(rows));
  if (asked.drills) await drillsDown(shop, given, where, expect);
  if (of_many_keys.includes(report)) await showsTheFirst(shop, given, where, expect);
}

/** Reports that read the keys that they show alone. */
const of_many_keys = ['partners', 'links', 'landing_pages', 'customers'];
let asked_before = 0;

/** One row or two, by each metric in turn, are the first of all rows. */
async function showsTheFirst(
  shop: Shop,
  given: Json,
  where: string,
  expect: (what: string, found: unknown, wanted: unknown) => void,
): Promise<void> {
  const metrics = Object.keys(given.totals).filter((name) => name !== 'other_currencies');
  const metric = metrics[asked_before++ % metrics.length] as string;
  const limit = 1 + (asked_before % 2);
  const { field } = given.drill_down_config;
  const firstOf = (rows: Json[]): Json[] =>
    rows.toSorted((a, b) => b[metric] - a[metric] || ((a[field] ?? '') < (b[field] ?? '') ? -1 : 1)).slice(0, limit);
  const first = await shop.merchant.get(`/v1/reports/${given.report}?${where}&sort=-${metric}&limit=${limit}`);
  expect(`the first ${limit} by ${metric}`, first.rows, firstOf(given.rows));
  expect(`the first ${limit} by ${metric} before`, first.previous_period.rows, firstOf(given.previous_period.rows));
  expect(`totals beside the first ${limit}`, first.totals, given.totals);
}

const away = (value: number): number => Math.sign(value) * Math.round(Math.abs(value)) + 0;
const metricsOf = (row: Json, totals: Json): Json =>
  Object.fromEntries(Object.keys(totals).map((name) => [name, row[name]]));

function periods(facts: Facts, { zone, window, interval }: Asked): Map<string | null, Json> {
  const day = dayOf(zone);
  const labels = new Set<string>();
  for (let at = Date.parse(window.from); at < Date.parse(window.to); at += 900_000)
    labels.add(labelOf(day(at), interval));
  return new Map(
    [...labels].map((label) => [
      label,
      totalsOf(
        facts.filter(({ at }) => labelOf(day(at), interval) === label),
        'overview',
        'USD',
      ),
    ]),
  );
}

/** Each row, followed into the same report and into the list. */
async function drillsDown(
  shop: Shop,
  given: Json,
  where: string,
  expect: (what: string, found: unknown, wanted: unknown) => void,
): Promise<void> {
  const { field, filter_type, value_prop, list } = given.drill_down_config;
  for (const row of given.rows) {
    const filter = `${filter_type}=${encodeURIComponent(row[value_prop] ?? 'none')}`;
    const same = await shop.merchant.get(`/v1/reports/${given.report}?${where}&${filter}`);
    expect(
      `${row[field]} followed into the report`,
      metricsOf(same.totals, given.totals),
      metricsOf(row, given.totals),
    );
    if (given.report !== 'groups' || row[field] !== null) {
      expect(
        `${row[field]} alone in the report`,
        same.rows.map((one: Json) => one[field]),
        sameRows(row, field),
      );
    }
    const found = await shop.merchant.get(`/v1/${list}?${where.replace(/&interval=\w+/, '')}&${filter}&limit=1`);
    expect(`${row[field]} followed into the list`, found.total_count, row[list]);
  }
}

const sameRows = (row: Json, field: string): unknown[] => [row[field]];

t.test('equals a recount of the rows, and drills down to lists of as many', { timeout: 600_000 }, async (t) => {
  const history = fc.record({
    steps: fc.array(step, { minLength: 20, maxLength: 45 }),
    first: fc.integer({ min: 5, max: 30 }),
    length: fc.integer({ min: 1, max: 30 }),
    extra_ms: fc.constantFrom(0, 0, 900_000, 12_345_678),
    interval: fc.constantFrom('day', 'week', 'month'),
    drilled: fc.constantFrom(...zones),
  });
  const holds = fc.asyncProperty(history, async ({ steps, first, length, extra_ms, interval, drilled }) => {
    const world = await openWorld();
    for (const one of steps) await acts[one.act]?.(world, one);
    for (const most of [7, 1_000_000]) {
      await fold(most);
      const facts = await factsOf(rail, world.shop.program_id);
      for (const zone of zones) {
        const window = windowOf(zone, first, length, extra_ms);
        for (const report of Object.keys(rows_of))
          await equalsRecount(t, world, facts, {
            report,
            zone,
            window,
            interval,
            drills: zone === drilled && most > 7,
          });
      }
    }
  });
  await fc.assert(holds, { numRuns: Number(process.env.RECOUNT_RUNS ?? effort.recounted_histories), ...seed() });
});
