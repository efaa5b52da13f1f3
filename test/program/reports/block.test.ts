/** Sums that are packed: reports read them beside what has changed since, and say the same at every moment. */

import type { Sql } from 'sql-template-tag';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldReports, packReports } from '../../../src/program/reports/sums/fold.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

/** No worker: the sums are folded and packed where the test says so. */
const rail = await startRail({ worker: false });
const service = { organization_id: null, request_id: null };
const fold = (): Promise<number> => transaction(rail.store, service, (tx) => foldReports(tx, 1_000_000));
const pack = (most: number): Promise<number> => transaction(rail.store, service, (tx) => packReports(tx, most));

const customers = 1_200;
const days = 24;
const day_ms = 86_400_000;
const today = Math.floor(Date.now() / day_ms) * day_ms;

/** Customers of three partners, each with one sale or two of amounts that fit into 2, 4 and 8 bytes, and refunds five days after some sales. */
async function sell({ program_id, merchant }: Shop, partners: Json[]): Promise<void> {
  const { organization_id } = merchant;
  const ids = partners.map(({ id }) => id);
  await rail.query(sql`
    insert into program.customer (organization_id, id, program_id, partner_id, status, tracked_by, created_at, updated_at)
    select ${organization_id}, 'cus_block' || lpad(n::text, 21, '0'), ${program_id}, (${ids}::text[])[1 + n % 3], 'active', 'link', now(), now()
    from generate_series(1, ${customers}) as n`);
  await rail.query(sql`
    insert into program.sale (
      organization_id, id, program_id, partner_id, customer_id, external_charge_id, amount_minor, net_amount_minor, currency, refunded_minor, status,
      is_first_sale, occurred_at, created_at, updated_at
    )
    select ${organization_id}, 'sale_block' || lpad(n::text, 20, '0'), ${program_id}, (${ids}::text[])[1 + n % 3],
      'cus_block' || lpad((1 + n * 7919 % ${customers})::text, 21, '0'), 'block_' || n, a.amount, a.amount, a.currency,
      a.refunded, case when a.refunded > 0 then 'partially_refunded' else 'paid' end, false, a.at, a.at, a.at
    from generate_series(1, ${customers * 2}) as n
    cross join lateral (
      select
        case n % ${days} when 3 then 5000000000 when 4 then 70000 + n % 11 else 100 + n % 13 end as amount,
        case when n % 17 = 0 then 'EUR' else 'USD' end as currency, case when n % 37 = 0 then 40 else 0 end as refunded,
        ${new Date(today).toISOString()}::timestamptz - (1 + n % ${days}) * interval '1 day' + n % 24 * interval '1 hour' as at
    ) as a`);
  await rail.query(sql`
    insert into program.refund (organization_id, id, program_id, sale_id, amount_minor, refunded_at, created_at)
    select s.organization_id, replace(s.id, 'sale_', 'rfd_'), s.program_id, s.id, s.refunded_minor, s.occurred_at + interval '5 days', s.occurred_at
    from program.sale s
    where s.program_id = ${program_id} and s.refunded_minor > 0`);
}

const reports = ['partners', 'groups', 'customers', 'countries'];
/** All rows of few keys are read, by whatever metric they are sorted. */
const sorts = ['-revenue_minor'];
/** By what few customers have, by what none has, and from the lowest up: most have nothing of it, and with refunds alone it is below 0. */
const sorts_of_customers = [
  '-revenue_minor',
  '-net_revenue_minor',
  '-sales',
  '-refunds_minor',
  '-clawbacks_minor',
  'net_revenue_minor',
  'revenue_minor',
  'sales',
];

/** What reports say of two windows in two zones: the first rows by several metrics, and their totals. */
async function said({ program_id, merchant }: Shop): Promise<Json> {
  const replies: Json = {};
  for (const report of reports)
    for (const sort of report === 'customers' ? sorts_of_customers : sorts)
      for (const [from, zone] of [
        [today - 20 * day_ms, 'UTC'],
        [today - 17 * day_ms - 5.5 * 3_600_000, 'Asia/Kolkata'],
      ] as const) {
        const window = `from=${new Date(from).toISOString()}&to=${new Date(today).toISOString()}&timezone=${zone}`;
        const reply = await merchant.get(
          `/v1/reports/${report}?program_id=${program_id}&${window}&limit=20&sort=${sort}`,
        );
        replies[`${report} ${sort} ${zone}`] = reply;
      }
  const all = `from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}&limit=10000`;
  const filtered = `/v1/reports/customers?program_id=${program_id}&${all}&link_id=none`;
  replies['customers by no link'] = await merchant.get(filtered);
  return replies;
}

/** How many blocks there are, and how many spans that have ended have changed since they were packed. */
const spans = () =>
  rail.query<{ blocks: number; changed: number }>(sql`
    select
      (select count(*) from program.report_block b) as blocks,
      (
        select count(*)
        from program.report_unpacked u
        join program.report_slice s on s.id = u.slice_id
        where u.starts_in + s.minutes <= ${today / 60_000}
      ) as changed`);

t.test(
  'says the same of rows, of sums, of what is packed in part or whole, and of what has changed since',
  async (t) => {
    const shop = await openShop(rail);
    const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
    await sell(shop, partners);
    await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
    const of_rows = await said(shop);
    await rail.query(sql`update program.program set reports_ready = true where id = ${shop.program_id}`);
    t.equal(of_rows['customers -revenue_minor UTC'].rows.length, 20);
    t.ok(of_rows['customers by no link'].rows.length > 600);
    const window = `from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}`;
    const path = `/v1/reports/customers?program_id=${shop.program_id}&${window}`;
    t.equal((await shop.merchant.get(path)).rows.length, 100, 'the default of `limit`');
    t.same(await said(shop), of_rows, 'not folded');
    await fold();
    t.same(await said(shop), of_rows, 'not packed');
    t.equal(await pack(50), 50);
    t.same(await said(shop), of_rows, 'packed in part');
    while ((await pack(500)) === 500);
    const [{ blocks } = { blocks: 0 }] = await spans();
    t.ok(blocks > days * 10, `${blocks} blocks`);
    t.same(
      await rail.query(sql`select distinct b.width from program.report_block b order by 1`),
      [2, 4, 8].map((width) => ({ width })),
    );
    t.same(await said(shop), of_rows, 'packed');
    for (const others of await Promise.all([said(shop), said(shop)])) t.same(others, of_rows, 'at the same time');
    t.same(await rail.audit(), []);

    const [sale] = (await shop.list('sales')) as [Json];
    await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 123_456_789 });
    await shop.merchant.request('DELETE', '/v1/sales/sale_block00000000000000000019');
    await shop.sale({ partner_id: partners[0]?.id, occurred_at: new Date(today - 3 * day_ms).toISOString() });
    const of_notes = await said(shop);
    t.notSame(of_notes, of_rows);
    await fold();
    const [{ changed } = { changed: 0 }] = await spans();
    t.ok(changed > 0, `${changed} spans have changed`);
    t.same(await said(shop), of_notes, 'changed since');
    t.same(await rail.audit(), []);
    await pack(1_000);
    t.same(await said(shop), of_notes, 'packed again');
    t.match(await spans(), [{ changed: 0 }]);
    t.same(await rail.audit(), []);
  },
);

t.test('reads a span whose block has not the currency that came since', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const occurred_at = new Date(today - 3 * day_ms).toISOString();
  const revenue = async () => {
    const from = new Date(today - 5 * day_ms).toISOString();
    const path = `/v1/reports/partners?program_id=${shop.program_id}&from=${from}&to=${new Date(today).toISOString()}&limit=1`;
    return (await shop.merchant.get(path)).rows[0]?.revenue_minor;
  };
  await shop.sale({ partner_id: ada.id, occurred_at, currency: 'EUR' });
  await fold();
  while ((await pack(500)) === 500);
  t.equal(await revenue(), 0);
  await shop.sale({ partner_id: ada.id, occurred_at, amount_minor: 7_000 });
  t.equal(await revenue(), 7_000);
  await fold();
  t.equal(await revenue(), 7_000);
  await pack(500);
  t.equal(await revenue(), 7_000);
});

t.test('packs the quarters of days of sums that were there before quarters were', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  /** Midnight in India is within a quarter of a UTC day. */
  const [from, to] = [5, 2].map((days) => new Date(today - days * day_ms - 5.5 * 3_600_000).toISOString());
  const revenue = async () => {
    const path = `/v1/reports/partners?program_id=${shop.program_id}&from=${from}&to=${to}&timezone=Asia/Kolkata&limit=1`;
    return (await shop.merchant.get(path)).rows[0]?.revenue_minor;
  };
  const sell_at = (hours: number) =>
    shop.sale({
      partner_id: ada.id,
      amount_minor: 1_000,
      occurred_at: new Date(Date.parse(from as string) + hours * 3_600_000).toISOString(),
    });
  await sell_at(1);
  await sell_at(71);
  await fold();
  await rail.query(sql`
    with quarter as (delete from program.report_slice s where s.program_id = ${shop.program_id} and s.minutes = 360 returning s.id)
    delete from program.report_unpacked u using quarter q where u.slice_id = q.id`);
  while ((await pack(500)) === 500);
  t.equal(await revenue(), 2_000);
  await sell_at(30);
  await fold();
  t.equal(await revenue(), 3_000);
  while ((await pack(500)) === 500);
  t.equal(await revenue(), 3_000);
  t.same(await rail.audit(), []);
});

t.test('packs nothing twice and leaves nothing out while others write and fold', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const from = today - 4 * day_ms;
  let is_writing = true;
  const whileWriting = async (work: () => Promise<unknown>) => {
    while (is_writing) await work();
  };
  const seller = async (_: unknown, nth: number) => {
    for (let sale = 0; sale < 15; sale++) {
      const at = from + ((nth * 37 + sale * 11) % 72) * 3_600_000;
      const { id } = await shop.sale({
        partner_id: ada.id,
        amount_minor: 100,
        occurred_at: new Date(at).toISOString(),
      });
      if (sale % 5 === 0) await shop.merchant.patch(`/v1/sales/${id}`, { amount_minor: 50 });
    }
  };
  const others = [whileWriting(fold), whileWriting(fold), whileWriting(() => pack(3)), whileWriting(() => pack(1))];
  await Promise.all(Array.from({ length: 6 }, seller));
  is_writing = false;
  await Promise.all(others);
  const window = (hours: number) =>
    [from, from + 3 * day_ms].map((time) => new Date(time - hours * 3_600_000).toISOString());
  const found = async (hours: number) => {
    const [first, last] = window(hours);
    const path = `/v1/reports/partners?program_id=${shop.program_id}&from=${first}&to=${last}&limit=1`;
    const { totals, rows } = await shop.merchant.get(path);
    t.equal(rows[0]?.revenue_minor, totals.revenue_minor, `the row of ${hours} hours before is the total`);
    return totals.revenue_minor;
  };
  t.equal(await found(0), 6 * (12 * 100 + 3 * 50));
  await found(5.5);
  await fold();
  while ((await pack(500)) === 500);
  await found(5.5);
  t.equal(await found(0), 6 * (12 * 100 + 3 * 50));
  t.same(await rail.audit(), []);
});

t.test('folds many keys with one read of each, whatever the statistics say', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  await rail.query(sql`
    insert into program.report_key (organization_id, program_id, dimension, key)
    select ${shop.merchant.organization_id}, ${shop.program_id}, d, '' from unnest(array['customer_id', 'partner_id', 'link_id']) as d`);
  await rail.query(sql`analyze program.report_key`);
  await sell(shop, partners);
  const reads = async (): Promise<number> => {
    const [counted] = await rail.query<{ reads: number }>(sql`
      select sum(i.idx_tup_read)::integer as reads from pg_stat_user_indexes i where i.relid = 'program.report_key'::regclass`);
    return counted?.reads ?? 0;
  };
  const before = await reads();
  await transaction(rail.store, service, async (tx) => {
    await foldReports(tx, 1_000_000);
    await tx.one(sql`select pg_stat_force_next_flush()`);
  });
  const read = (await reads()) - before;
  t.ok(read > 0);
  t.ok(read < 20 * customers, 'a few for each customer');
  t.same(await rail.audit(), []);
});

t.test('adds up keys whose numbers are far from each other', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner()];
  const sell_to = ({ id }: Json, days_ago: number) =>
    shop.sale({ partner_id: id, occurred_at: new Date(today - days_ago * day_ms).toISOString() });
  const apart = (to: number) =>
    rail.query(sql`select setval(pg_get_serial_sequence('program.report_key', 'id'), ${to}::bigint)`);
  const [{ last } = { last: 0 }] = await rail.query<{ last: number }>(
    sql`select max(k.id) as last from program.report_key k`,
  );
  await sell_to(partners[0] as Json, 3);
  await fold();
  await apart(last + 50_000_000);
  await sell_to(partners[1] as Json, 3);
  await sell_to(partners[0] as Json, 4);
  const of_notes = await said(shop);
  await fold();
  while ((await pack(500)) === 500);
  t.same(await said(shop), of_notes);
  t.equal(of_notes['partners -revenue_minor UTC'].rows.length, 2);
});

t.test('keeps the values of a block in memory until it has another hash', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const [from, to] = [5, 2].map((days) => new Date(today - days * day_ms).toISOString());
  const revenue = async () => {
    const path = `/v1/reports/partners?program_id=${shop.program_id}&from=${from}&to=${to}&limit=1`;
    return (await shop.merchant.get(path)).rows[0]?.revenue_minor;
  };
  const change = (assignment: Sql) =>
    rail.query(sql`
      update program.report_block b set ${assignment}
      from program.report_slice s
      where s.id = b.slice_id and s.program_id = ${shop.program_id} and s.dimension = 'partner_id' and b.revenue_minor is not null`);
  await shop.sale({ partner_id: ada.id, amount_minor: 5_000, occurred_at: from });
  await fold();
  while ((await pack(500)) === 500);
  t.equal(await revenue(), 5_000);
  await change(sql`revenue_minor = int2send(7000::smallint)`);
  t.equal(await revenue(), 5_000, 'it is not read again');
  await change(sql`hash = sha256('packed anew')`);
  t.equal(await revenue(), 7_000);
  await change(sql`revenue_minor = int2send(5000::smallint), hash = sha256('once more')`);
  t.equal(await revenue(), 5_000);
  t.match(await rail.audit(), [{ invariant: 'the blocks of reports are the sums that they are made from' }]);
});

t.test('ranks keys by blocks in each order, those with nothing of the metric by their ids', async (t) => {
  const shop = await openShop(rail);
  await sell(shop, [await shop.partner(), await shop.partner(), await shop.partner()]);
  await fold();
  while ((await pack(500)) === 500);
  const window = `from=${new Date(today - 20 * day_ms).toISOString()}&to=${new Date(today).toISOString()}`;
  const path = `/v1/reports/customers?program_id=${shop.program_id}&${window}`;
  const customersBy = async (sort: string, limit: number): Promise<string[]> => {
    const { rows } = await shop.merchant.get(`${path}&sort=${sort}&limit=${limit}`);
    return rows.map(({ customer_id }: Json) => customer_id);
  };
  const all = await customersBy('-clawbacks_minor', customers);
  t.same(all, all.toSorted());
  t.ok(all.length > 600, `${all.length} customers`);
  t.notSame(await customersBy('revenue_minor', 200), all.slice(0, 200));
  await rail.query(sql`
    update program.report_block b set revenue_minor = null, hash = sha256('without' || b.hash)
    from program.report_slice s
    where s.id = b.slice_id and s.program_id = ${shop.program_id} and s.dimension = 'customer_id'`);
  t.same(await customersBy('revenue_minor', 200), all.slice(0, 200), 'all have the same value in the blocks');
});

t.test('the audit finds a block that is not what its sums are', async (t) => {
  await rail.query(sql`
    update program.report_block b set sales = null
    where (b.slice_id, b.starts_in, b.currency) = (
      select o.slice_id, o.starts_in, o.currency from program.report_block o where o.sales is not null order by 1, 2, 3 limit 1
    )`);
  t.match(await rail.audit(), [{ invariant: 'the blocks of reports are the sums that they are made from' }]);
  await rail.query(sql`
    insert into program.report_unpacked (slice_id, starts_in, organization_id)
    select distinct b.slice_id, b.starts_in, b.organization_id from program.report_block b`);
  await pack(10_000);
  t.same(await rail.audit(), []);
});

t.test('leaves sums that a number does not hold to Postgres', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  const day = new Date(today - 2 * day_ms).toISOString();
  await shop.sale({ partner_id: ada.id, occurred_at: day, amount_minor: 5_000 });
  await fold();
  await rail.query(sql`
    update program.report_total t set revenue_minor = 9007199254740993
    from program.report_slice s
    where s.id = t.slice_id and s.program_id = ${shop.program_id} and t.revenue_minor is not null`);
  await pack(10_000);
  const large = await rail.query<{ dimension: string }>(sql`
    select distinct s.dimension from program.report_unpacked u join program.report_slice s on s.id = u.slice_id
    where u.is_large and s.program_id = ${shop.program_id} order by 1`);
  t.same(
    large.map(({ dimension }) => dimension),
    ['country', 'coupon_id', 'customer_id', 'landing_page', 'link_id', 'partner_id'],
  );
  t.equal(await pack(10_000), 0, 'it is not tried again');
  await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
});
