/** The views that analysts and accountants ask for first, against the rows that they are about. */
import sql from 'sql-template-tag';
import t from 'tap';
import { examples } from '../../src/data/guide.ts';
import { eventually, type Json, startRail, startReceiver } from '../harness.ts';
import { openShop } from '../shop.ts';
import { connectAs, newLogin } from './tenant.ts';

const rail = await startRail();
const receiver = await startReceiver((_, nth) => (nth === 1 ? 500 : 200));
const shop = await openShop(rail, { holding_period_days: 30 });
await shop.endpoint(receiver.url);
await shop.rule();
const psql = await connectAs(await newLogin(rail, shop.merchant));
const [ada, alan] = [await shop.partner(), await shop.partner()];

/** Sales in two months, currencies and states, with refunds in part and in whole, before and after payment. */
const january = { occurred_at: '2026-01-31T23:30:00.000Z' };
const march = { occurred_at: '2026-03-01T00:10:00.000Z' };
const customer = await shop.referred(ada);
const paid = await shop.sale({ ...january, customer_id: customer.id, amount_minor: 10_000 });
await shop.pay(paid.commissions[0]);
await shop.sale({ ...march, customer_id: customer.id, amount_minor: 30_000, product_id: 'pro' });
await shop.refund(paid, { amount_minor: 2_500, external_refund_id: 're_1' });
const of_alan = await shop.referred(alan);
const euros = await shop.sale({ ...march, customer_id: of_alan.id, amount_minor: 7_000, currency: 'EUR' });
await shop.refund(euros);
await shop.sale({ ...march, amount_minor: 5_000 });
await shop.merchant.post('/v1/commissions', { program_id: shop.program_id, partner_id: alan.id, amount_minor: 900 });

const now = async (): Promise<string> => (await psql.query('select clock_timestamp()::text as at'))[0]?.at;

t.test('tells what each partner is owed, by currency', async (t) => {
  const balances = await psql.query('select * from data.partner_balance order by partner_id, currency');
  const of = (partner: Json, currency = 'USD') =>
    balances.find((row) => row.partner_id === partner.id && row.currency === currency);
  t.match(of(ada), {
    earned_minor: '7500',
    paid_minor: '2000',
    due_minor: '5500',
    balance_minor: '5500',
    pending_minor: '0',
  });
  t.match(of(alan), { earned_minor: '900', due_minor: '900', due_commissions: '1' });
  t.match(of(alan, 'EUR'), { earned_minor: '0', balance_minor: '0' });
  t.same(await psql.query('select * from data.payable_liability order by currency'), [
    {
      program_id: shop.program_id,
      currency: 'EUR',
      partners: '0',
      payable_minor: '0',
      receivable_minor: '0',
      net_minor: '0',
    },
    {
      program_id: shop.program_id,
      currency: 'USD',
      partners: '2',
      payable_minor: '6400',
      receivable_minor: '0',
      net_minor: '6400',
    },
  ]);
});

t.test('keeps accounts whose closing balances are what is owed', async (t) => {
  const ledger = await psql.query('select * from data.partner_ledger order by position');
  for (const balance of await psql.query('select * from data.partner_balance')) {
    const account = ledger.filter((row) => row.partner_id === balance.partner_id && row.currency === balance.currency);
    t.equal(account.at(-1)?.closing_minor, balance.balance_minor);
    t.equal(account[0]?.opening_minor, '0');
    for (const [nth, row] of account.entries()) {
      t.equal(Number(row.opening_minor) + Number(row.amount_minor), Number(row.closing_minor));
      if (nth > 0) t.equal(row.opening_minor, account[nth - 1]?.closing_minor);
    }
    const months = await psql.query(`
      select * from data.partner_ledger_monthly
      where partner_id = '${balance.partner_id}' and currency = '${balance.currency}' order by month`);
    t.equal(months.at(-1)?.closing_minor, balance.balance_minor);
    for (const row of months) {
      const movements = ['earned', 'adjusted', 'clawed_back', 'voided', 'paid'].map((kind) =>
        Number(row[`${kind}_minor`]),
      );
      t.equal(
        movements.reduce((sum, one) => sum + one, Number(row.opening_minor)),
        Number(row.closing_minor),
      );
    }
  }
  t.match(
    ledger.find(({ external_refund_id }) => external_refund_id === 're_1'),
    { kind: 'clawed_back', external_charge_id: paid.external_charge_id, amount_minor: '-500' },
  );
});

t.test('tells what was owed at a time, whatever happens afterwards', async (t) => {
  const as_of = async (at: string) => psql.query(`select * from data.payable_liability('${at}') order by currency`);
  const at = await now();
  const before = await as_of(at);
  t.same(before, await psql.query('select * from data.payable_liability order by currency'));
  t.same(await as_of('2020-01-01'), []);
  const customer = await shop.referred(alan);
  const later = await shop.sale({ customer_id: customer.id, amount_minor: 1_000 });
  t.same(await as_of(at), before);
  t.equal((await as_of(await now()))[1]?.net_minor, '6600');
  await shop.refund(later);
  t.same(await as_of(at), before);
  t.same(await as_of(await now()), before);
});

t.test('counts the funnel on the days on which it happened', async (t) => {
  const days = await psql.query(
    'select day::text, partner_id, clicks, referrals, leads, customers, sales from data.funnel_daily',
  );
  const sum = (column: string) => days.reduce((total, row) => total + Number(row[column]), 0);
  const [expected] = await rail.query(sql`
    select
      (select count(*) from program.click where program_id = ${shop.program_id}) as clicks,
      (select count(*) from program.referral where program_id = ${shop.program_id} and deleted_at is null) as referrals,
      (select count(*) from program.customer where program_id = ${shop.program_id} and lead_at is not null) as leads,
      (select count(*) from program.customer where program_id = ${shop.program_id} and converted_at is not null) as customers,
      (select count(*) from program.sale where program_id = ${shop.program_id} and partner_id is not null) as sales`);
  t.same(Object.fromEntries(Object.keys(expected as Json).map((column) => [column, sum(column)])), expected);
  const on = await psql.query(
    `select partner_id, sales from data.funnel_daily where day = '2026-01-31' and sales > 0 order by partner_id`,
  );
  t.same(on, [{ partner_id: ada.id, sales: '1' }]);
});

t.test('rolls sales, clicks and commissions up by day', async (t) => {
  const sales = await psql.query(`
      select day::text, partner_id, product_id, currency, sales, amount_minor, refunded_minor
      from data.sale_daily where day between '2026-01-01' and '2026-03-31' order by day, sale_daily.amount_minor desc`);
  t.same(
    sales.map((row) => Object.values(row)),
    [
      ['2026-01-31', ada.id, null, 'USD', '1', '10000', '2500'],
      ['2026-03-01', ada.id, 'pro', 'USD', '1', '30000', '0'],
      ['2026-03-01', alan.id, null, 'EUR', '1', '7000', '7000'],
      ['2026-03-01', null, null, 'USD', '1', '5000', '0'],
    ],
  );
  const [clicks] = await psql.query('select sum(clicks)::int as clicks from data.click_daily');
  t.same(clicks, { clicks: (await shop.list('clicks')).length });
  const [commissions] = await psql.query(`
    select sum(earned_minor + adjusted_minor + clawed_back_minor + voided_minor)::int as counted from data.commission_daily`);
  const [counted] = await psql.query('select sum(counted_minor)::int as counted from data.commission');
  t.same(commissions, counted);
});

t.test('tells cohorts and refund rates', async (t) => {
  const cohorts = await psql.query(`
    select cohort::text, months_since, currency, customers, revenue_minor, refunded_minor, net_revenue_minor
    from data.cohort_revenue where cohort < '2026-02-01' order by months_since`);
  t.match(cohorts, [
    { cohort: '2026-01-01', months_since: 0, customers: '1', revenue_minor: '10000', net_revenue_minor: '7500' },
    { cohort: '2026-01-01', months_since: 2, customers: '1', revenue_minor: '30000', net_revenue_minor: '30000' },
  ]);
  const rates = await psql.query(
    `select month::text, refunded_sales, refund_rate_bps from data.refund_rate where partner_id = '${ada.id}' order by month`,
  );
  t.same(rates, [
    { month: '2026-01-01', refunded_sales: '1', refund_rate_bps: '2500' },
    { month: '2026-03-01', refunded_sales: '0', refund_rate_bps: '0' },
  ]);
});

t.test('tells how endpoints answer', async (t) => {
  await eventually(async () => {
    const [{ left } = { left: 1 }] = await rail.query<{ left: number }>(sql`
      select (select count(*) from webhooks.pending_event) + (select count(*) from webhooks.delivery where attempt = 0) as left`);
    return left === 0;
  }, 'all events to be told');
  const [health] = await psql.query('select * from data.webhook_health');
  const [deliveries] = await psql.query(`
    select count(*) as deliveries, count(*) filter (where status = 'delivered') as delivered,
      count(*) filter (where status = 'pending') as pending, sum(attempt) as attempts
    from data.webhook_delivery`);
  t.match(health, { ...deliveries, delivered_bps: '10000' });
  t.equal(health?.pending, '1', 'the one that was answered 500 waits');
});

t.test('shows no deliveries of the recruitment service', async (t) => {
  const [{ organization_id } = { organization_id: '' }] = await rail.query<{ organization_id: string }>(
    sql`select organization_id from webhooks.delivery where attempt > 0 limit 1`,
  );
  await rail.query(sql`
    insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, status, attempt)
    values (${organization_id}, 'fwd_1', ${organization_id}, 'fwe_1', 'fev_1', 'affiliate.added', 'delivered', 1)`);
  await rail.query(sql`
    insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code)
    values (${organization_id}, 'fwd_1', 1, now(), 5, 200)`);
  t.not((await psql.query('select * from data.webhook_attempt')).length, 0);
  t.same(await psql.query(`select * from data.webhook_attempt where delivery_id = 'fwd_1'`), []);
  t.same(await psql.query(`select * from data.webhook_health where endpoint_id = 'fwe_1'`), []);
  t.same(await psql.query(`select * from data.webhook_delivery where id = 'fwd_1'`), []);
});

t.test('tells what was paid in a year, and reconciles by the ids of others', async (t) => {
  const [yearly] = await psql.query(`select * from data.paid_yearly where partner_id = '${ada.id}'`);
  t.match(yearly, { paid_minor: '2000', payouts: '1', currency: 'USD', tax_form_status: 'none' });
  const moved = await psql.query(
    `select object, amount_minor from data.reconciliation where external_id in ('re_1', '${paid.external_charge_id}') order by object`,
  );
  t.same(moved, [
    { object: 'refund', amount_minor: '-2500' },
    { object: 'sale', amount_minor: '10000' },
  ]);
});

t.test('counts each sale once in the example of revenue and commissions, as the report does', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const [ada, alan] = [await shop.partner(), await shop.partner()];
  const raised = await shop.sale({ ...march, partner_id: ada.id, amount_minor: 10_000 });
  const moved = await shop.sale({ ...march, partner_id: alan.id, amount_minor: 7_000 });
  const deleted = await shop.sale({ ...march, partner_id: alan.id, amount_minor: 3_000 });
  await shop.sale({ occurred_at: '2026-04-01T00:00:00.000Z', partner_id: alan.id, amount_minor: 500 });
  for (const { commissions } of [raised, moved, deleted]) await shop.pay(commissions[0]);
  await shop.merchant.patch(`/v1/sales/${deleted.id}`, { amount_minor: 4_000 });
  await shop.pay((await shop.commissionsOf(deleted))[1] as Json);
  await shop.merchant.delete(`/v1/sales/${deleted.id}`);
  await shop.merchant.patch(`/v1/sales/${raised.id}`, { amount_minor: 20_000 });
  await shop.merchant.patch(`/v1/sales/${moved.id}`, { partner_id: ada.id });
  const example = examples[0]?.sql.replaceAll('now()', "timestamptz '2026-03-15T00:00Z'") as string;
  const window = 'from=2026-03-01T00:00:00Z&to=2026-04-01T00:00:00Z';
  const { rows } = await shop.merchant.get(`/v1/reports/partners?program_id=${shop.program_id}&${window}`);
  const analyst = await connectAs(await newLogin(rail, shop.merchant));
  t.same(
    await analyst.query(example),
    rows.map(({ handle, revenue_minor, commissions_minor }: Json) => ({
      handle,
      currency: 'USD',
      revenue_minor: `${revenue_minor}`,
      commissions_minor: `${commissions_minor}`,
    })),
  );
  t.match(rows, [{ revenue_minor: 27_000 }, { revenue_minor: 0, commissions_minor: 1_400 + 600 + 200 }]);
});
