import pg from 'pg';
import t, { type Test } from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { foldReports } from '../../../src/program/reports/sums/fold.ts';
import { rebuildReports } from '../../../src/program/reports/sums/rebuild.ts';
import { eventually, type Json, patient_api, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { batchOf, bonus, payee } from '../payouts/fixture.ts';

const rail = await startRail();
const fold = (most = 1_000_000): Promise<number> =>
  transaction(rail.store, { organization_id: null, request_id: null }, (tx) => foldReports(tx, most));

/** An hour before and after. */
const aroundNow = (): string =>
  `from=${new Date(Date.now() - 3_600_000).toISOString()}&to=${new Date(Date.now() + 3_600_000).toISOString()}`;

t.test('says of a partner that it was deleted', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  await shop.sale({ partner_id: ada.id });
  const status = async () =>
    (await shop.merchant.get(`/v1/reports/partners?program_id=${shop.program_id}&${aroundNow()}`)).rows[0]?.status;
  t.equal(await status(), 'active');
  await shop.merchant.request('DELETE', `/v1/partners/${ada.id}`);
  t.equal(await status(), 'deleted');
});

t.test('counts what was just written, before and after it is folded', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const customer = await shop.referred(ada);
  const sale = await shop.sale({ customer_id: customer.id, product_id: 'pro' });
  await shop.refund(sale, { amount_minor: 2_500 });
  const now = Date.now();
  const window = `from=${new Date(now - 3_600_000).toISOString()}&to=${new Date(now + 3_600_000).toISOString()}`;
  const report = (name: string): Promise<Json> =>
    shop.merchant.get(`/v1/reports/${name}?program_id=${shop.program_id}&${window}`);
  for (const state of ['noted', 'folded in part', 'folded']) {
    const overview = await report('overview');
    t.match(
      overview.totals,
      {
        clicks: 1,
        referrals: 1,
        leads: 1,
        customers: 1,
        sales: 1,
        revenue_minor: 10_000,
        refunds_minor: 2_500,
        commissions_minor: 1_500,
      },
      state,
    );
    const partners = await report('partners');
    t.match(partners.rows, [
      { partner_id: ada.id, handle: ada.handle, clicks: 1, net_revenue_minor: 7_500, epc_minor: 1_500 },
    ]);
    t.match((await report('products')).rows, [{ product_id: 'pro', sales: 1 }]);
    t.same((await report('groups')).rows[0].group_id, ada.group_id);
    await fold(state === 'noted' ? 3 : undefined);
  }
});

t.test('counts what was there before anything was noted, while others write', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const ada = await shop.partner();
  const sale = await shop.sale({ customer_id: (await shop.referred(ada)).id });
  await rail.query(sql`update program.program set reports_ready = false where id = ${shop.program_id}`);
  await rail.query(sql`delete from program.report_note where program_id = ${shop.program_id}`);
  await rail.query(sql`select program.drop_report_totals(array[${shop.program_id}])`);
  const now = Date.now();
  const window = `from=${new Date(now - 90 * 86_400_000).toISOString()}&to=${new Date(now + 3_600_000).toISOString()}`;
  const totals = async (): Promise<Json> =>
    (await shop.merchant.get(`/v1/reports/overview?program_id=${shop.program_id}&${window}`)).totals;
  t.match(await totals(), { clicks: 1, sales: 1, revenue_minor: 10_000, refunds_minor: 0 }, 'from the facts');
  const writing = Promise.all(Array.from({ length: 20 }, () => shop.click(ada)));
  await rebuildReports(rail.store.database);
  await writing;
  await shop.refund(sale, { amount_minor: 1_000 });
  t.same(await rail.query(sql`select from program.program where not reports_ready`), []);
  for (const state of ['noted', 'folded']) {
    t.match(await totals(), { clicks: 21, sales: 1, revenue_minor: 10_000, refunds_minor: 1_000 }, state);
    await fold();
  }
  t.same(await rail.audit(), []);
});

t.test('adds up payouts by batch, as their list counts them', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [6_000, 500]);
  await payee(shop, [7_000, 8_000]);
  await bonus(shop, ada, 9_000, { currency: 'EUR' });
  const batch = await batchOf(shop);
  const [payout] = await shop.list('payouts', `partner_id=${ada.id}&currency=USD`);
  await shop.merchant.post(`/v1/payouts/${payout?.id}/mark_paid`, {});
  const where = `program_id=${shop.program_id}&${aroundNow()}`;
  const report = await shop.merchant.get(`/v1/reports/payouts?${where}`);
  const sums = {
    payouts: 3,
    pending_minor: 15_000,
    processing_minor: 0,
    paid_minor: 6_500,
    failed_minor: 0,
    fee_minor: 0,
  };
  t.match(report.totals, sums);
  t.match(report.rows, [{ batch_id: batch.id, due_at: batch.due_at, ...sums }]);
  t.match(report.totals.other_currencies, [{ currency: 'EUR', pending_minor: 9_000 }]);
  t.match(report.drill_down_config, { field: 'batch_id', filter_type: 'batch_id', list: 'payouts' });
  const listed = await shop.merchant.get(`/v1/payouts?${where}&batch_id=${batch.id}`);
  t.equal(listed.total_count, report.rows[0].payouts);
  const own = await shop.merchant.get(`/v1/reports/payouts?${where}&partner_id=${ada.id}`);
  t.equal(own.totals.payouts, (await shop.merchant.get(`/v1/payouts?${where}&partner_id=${ada.id}`)).total_count);
  const refused = await shop.merchant.request('GET', `/v1/reports/payouts?${where}&country=DE`);
  t.match(refused, { status: 400, body: { error: { code: 'invalid_parameter', param: 'country' } } });
});

t.test('sorts, limits, and gives all rows as CSV and NDJSON', async (t) => {
  const shop = await openShop(rail);
  const partners = [await shop.partner(), await shop.partner(), await shop.partner()];
  for (const [nth, { id: partner_id }] of partners.entries())
    await shop.sale({ partner_id, amount_minor: 1_000 * (nth + 1), occurred_at: new Date().toISOString() });
  const where = `program_id=${shop.program_id}&${aroundNow()}`;
  const ids = async (query: string): Promise<string[]> =>
    (await shop.merchant.get(`/v1/reports/partners?${where}&${query}`)).rows.map(({ partner_id }: Json) => partner_id);
  const by_revenue = partners.map(({ id }) => id).reverse();
  t.same(await ids(''), by_revenue);
  t.same(await ids('sort=revenue_minor'), by_revenue.toReversed());
  t.same(await ids('sort=-sales'), by_revenue.toSorted(), 'equal ones by their key');
  const limited = await shop.merchant.get(`/v1/reports/partners?${where}&limit=1`);
  t.same([limited.rows.length, limited.totals.revenue_minor], [1, 6_000], 'totals are of all rows');
  const url = `${rail.address}/v1/reports/partners?${where}&format=csv`;
  const csv = await fetch(url, { headers: { Authorization: `Bearer ${shop.merchant.key}` } });
  const [head, first] = (await csv.text()).split('\r\n');
  t.match(head, /^partner_id,handle,status,group_id,clicks,.*,epc_minor,currency,other_currencies$/);
  t.match(first, new RegExp(`^${by_revenue[0]},.*,USD,\\[\\]$`));
  const lines = await shop.merchant.get(`/v1/reports/partners?${where}&format=ndjson`);
  t.same(
    lines.data.map(({ partner_id }: Json) => partner_id),
    by_revenue,
  );
  for (const [query, param] of [
    ['sort=handle', 'sort'],
    ['limit=0', 'limit'],
    ['limit=1&format=csv', 'limit'],
    ['timezone=Mars/Olympus', 'timezone'],
    ['timezone=%2B05:30', 'timezone'],
    ['period=2026-W54', 'period'],
    ['period=2026-02-30', 'period'],
    ['batch_id=batch_1', 'batch_id'],
  ] as const) {
    const { status, body } = await shop.merchant.request('GET', `/v1/reports/partners?${where}&${query}`);
    t.match({ status, ...body.error }, { status: 400, code: 'invalid_parameter', param }, query);
  }
});

t.test('names the days, weeks and months of a zone, and takes those as many before', async (t) => {
  const shop = await openShop(rail);
  const overview = (query: string): Promise<Json> =>
    shop.merchant.get(`/v1/reports/overview?program_id=${shop.program_id}&${query}`);
  const days = await overview('from=2026-03-07T05:00:00Z&to=2026-03-10T04:00:00Z&timezone=America/New_York');
  t.match(days.rows, [
    { period: '2026-03-07', from: '2026-03-07T05:00:00.000Z', to: '2026-03-08T05:00:00.000Z' },
    { period: '2026-03-08', from: '2026-03-08T05:00:00.000Z', to: '2026-03-09T04:00:00.000Z' },
    { period: '2026-03-09', from: '2026-03-09T04:00:00.000Z', to: '2026-03-10T04:00:00.000Z' },
  ]);
  t.equal(days.previous_period.from, '2026-03-04T05:00:00.000Z', 'three days before, although one has 23 hours');
  const weeks = await overview('from=2025-12-25T00:00:00Z&to=2026-01-07T12:00:00Z&interval=week');
  t.match(weeks.rows, [
    { period: '2025-W52', from: '2025-12-25T00:00:00.000Z', to: '2025-12-29T00:00:00.000Z' },
    { period: '2026-W01', to: '2026-01-05T00:00:00.000Z' },
    { period: '2026-W02', to: '2026-01-07T12:00:00.000Z' },
  ]);
  t.equal(weeks.previous_period.from, '2025-12-11T12:00:00.000Z', 'as long as the window');
  const havana = await overview(
    'from=2026-10-31T04:00:00Z&to=2026-11-03T05:00:00Z&timezone=America/Havana&compare=none',
  );
  t.match(havana.rows, [
    { period: '2026-10-31' },
    { period: '2026-11-01', from: '2026-11-01T04:00:00.000Z', to: '2026-11-02T05:00:00.000Z' },
    { period: '2026-11-02' },
  ]);
  t.same([havana.previous_period, havana.delta], [undefined, undefined]);
  const chita = await overview('from=2014-10-24T14:00:00Z&to=2014-10-26T16:00:00Z&timezone=Asia/Chita&compare=none');
  t.match(
    chita.rows,
    [
      { period: '2014-10-25', from: '2014-10-24T14:00:00.000Z', to: '2014-10-25T14:00:00.000Z' },
      { period: '2014-10-26', from: '2014-10-25T14:00:00.000Z', to: '2014-10-26T16:00:00.000Z' },
    ],
    'clocks were put back by two hours to midnight',
  );
  const newfoundland = await overview(
    'from=2006-10-28T02:30:00Z&to=2006-10-29T03:00:00Z&timezone=America/St_Johns&compare=none',
  );
  t.match(
    newfoundland.rows,
    [
      { period: '2006-10-28', from: '2006-10-28T02:30:00.000Z', to: '2006-10-29T02:30:00.000Z' },
      { period: '2006-10-29', from: '2006-10-29T02:30:00.000Z', to: '2006-10-29T03:00:00.000Z' },
    ],
    'clocks were put back from the first minute of a day to the day before, in which the window ends',
  );
  t.match(
    (await overview('from=2006-10-29T03:00:00Z&to=2006-10-30T03:30:00Z&timezone=America/St_Johns')).rows,
    [{ period: '2006-10-29', from: '2006-10-29T03:00:00.000Z', to: '2006-10-30T03:30:00.000Z' }],
    'or begins',
  );
  const month = await overview('from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z&period=2026-02&interval=month');
  t.match(month, { from: '2026-02-01T00:00:00.000Z', to: '2026-03-01T00:00:00.000Z' });
  t.equal(month.rows.length, 1);
  for (const [period, at] of [
    ['2025-12', '2026-01-01T00:00:00.000Z'],
    ['2027-02', '2027-01-01T00:00:00.000Z'],
  ])
    t.match(
      await overview(`from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z&period=${period}`),
      { from: at, to: at, rows: [], totals: { sales: 0 } },
      `${period} is not in the window`,
    );
});

t.test('notes an update that changes what counts, and no other', async (t) => {
  const shop = await openShop(rail);
  await shop.rule();
  const customer = await shop.referred(await shop.partner());
  const sale = await shop.sale({ customer_id: customer.id });
  const [commission] = await shop.commissionsOf(sale);
  const tenant = { organization_id: shop.merchant.organization_id, request_id: null };
  const notesOf = (update: ReturnType<typeof sql>): Promise<Json[]> =>
    transaction(rail.store, tenant, async (tx) => {
      await tx.all(update);
      return tx.all(sql`
        select t.sign, t.noun from program.report_note t where t.xmin = pg_current_xact_id()::xid order by t.noun, t.sign`);
    });
  const ofNothing = [
    sql`update program.commission set status = 'due' where id = ${commission?.id}`,
    sql`update program.customer set status = 'trial' where id = ${customer.id}`,
    sql`update program.sale set status = status, metadata = '{"a":1}' where id = ${sale.id}`,
    sql`update program.referral set status = 'lead' where id = ${customer.referral_id}`,
  ];
  for (const update of ofNothing) t.same(await notesOf(update), []);
  t.same(
    await notesOf(
      sql`update program.commission set amount_minor = 1 where id = ${commission?.id} and program.because('edited_by_hand')`,
    ),
    [
      { sign: -1, noun: 'commission' },
      { sign: 1, noun: 'commission' },
    ],
  );
  const voided = sql`
    update program.commission set status = 'voided', voided_at = now(), void_reason = 'voided' where id = ${commission?.id} and program.because('edited_by_hand')`;
  t.same(await notesOf(voided), [{ sign: -1, noun: 'commission' }]);
  t.same(await notesOf(sql`update program.customer set converted_at = null where id = ${customer.id}`), [
    { sign: -1, noun: 'customer' },
    { sign: -1, noun: 'lead' },
    { sign: 1, noun: 'lead' },
  ]);
});

t.test(
  'counts each fact once while its sale is given away, its commission paid and voided, and notes are folded',
  async (t) => {
    const shop = await openShop(rail);
    await shop.rule();
    const partners = [await shop.partner(), await shop.partner()];
    const sales = await Promise.all([1, 2, 3].map(() => shop.sale({ partner_id: partners[0]?.id, product_id: 'pro' })));
    let running = true;
    const folding = (async () => {
      while (running) await fold(5);
    })();
    const reassign = async (sale: Json, nth: number) =>
      shop.merchant.request('PATCH', `/v1/sales/${sale.id}`, {
        partner_id: partners[nth % 2]?.id,
        product_id: nth % 3 === 0 ? 'team' : 'pro',
      });
    const decide = async (sale: Json, nth: number) => {
      const [commission] = await shop.commissionsOf(sale);
      if (!commission) return;
      if (nth % 2 === 0) await shop.pay(commission);
      else await shop.merchant.request('POST', `/v1/commissions/${commission.id}/void`, {});
    };
    const refund = (sale: Json) => shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, { amount_minor: 100 });
    const writes = sales.flatMap((sale) =>
      Array.from({ length: 8 }, (_, nth) => [reassign(sale, nth), decide(sale, nth), refund(sale)]).flat(),
    );
    await Promise.allSettled(writes);
    running = false;
    await folding;
    t.same(await rail.audit(), []);
    const { rows } = await shop.merchant.get(`/v1/reports/partners?program_id=${shop.program_id}&${aroundNow()}`);
    t.equal(
      rows.reduce((sum: number, row: Json) => sum + row.sales, 0),
      3,
    );
    for (const { partner_id, sales: count } of rows) {
      const listed = await shop.merchant.get(
        `/v1/sales?program_id=${shop.program_id}&${aroundNow()}&partner_id=${partner_id}`,
      );
      t.equal(listed.total_count, count);
    }
  },
);

t.test('runs two reports of an organization at once, and leaves the connections to other requests', async (t) => {
  const [shop, other, third] = [await openShop(rail), await openShop(rail), await openShop(rail)];
  const report = ({ merchant, program_id }: typeof shop, more = '') =>
    merchant.request('GET', `/v1/reports/overview?program_id=${program_id}&${aroundNow()}${more}`);
  const release = await holdReports(t);
  const many = Array.from({ length: 60 }, () => report(shop));
  await eventually(async () => (await rail.waiting()) === 2, 'two reports to run');
  t.equal((await other.merchant.request('GET', `/v1/clicks?program_id=${other.program_id}&limit=1`)).status, 200);
  t.equal((await report(shop, '&limit=0')).status, 400, 'what is wrong is said at once');
  t.equal(await rail.waiting(), 2);

  rail.app.answer_ms = 300;
  const late = await report(shop);
  t.equal(late.status, 429);
  t.match(late.body.error, { code: 'rate_limit_exceeded', message: /already running 2 reports/ });
  t.ok(late.headers['retry-after']);
  rail.app.answer_ms = patient_api.answer_ms;

  const others = [report(other), report(other), report(third)];
  await eventually(async () => (await rail.waiting()) === 5, 'a quarter of the connections to be in use');
  rail.app.answer_ms = 300;
  const refused = await report(third);
  t.equal(refused.status, 503);
  t.match(refused.body.error.message, /as many reports as it can/);
  rail.app.answer_ms = patient_api.answer_ms;

  await release();
  for (const { status } of await Promise.all([...many, ...others])) t.equal(status, 200);
});

/** Has all reports wait, from now on. @returns what lets them go on */
async function holdReports(t: Test): Promise<() => Promise<void>> {
  const client = new pg.Client(rail.url);
  await client.connect();
  t.teardown(() => client.end());
  await client.query('begin');
  await client.query('lock table program.report_total in access exclusive mode');
  return async () => void (await client.query('commit'));
}

t.test('finds a country in small letters, and refuses what is none', async (t) => {
  const shop = await openShop(rail);
  const ada = await shop.partner();
  await shop.click(ada, { country: 'de' });
  const sides = [new Date(Date.now() - 3_600_000), new Date(Date.now() + 3_600_000)];
  const [from, to] = sides.map((at) => at.toISOString());
  const where = `program_id=${shop.program_id}&from=${from}&to=${to}`;
  for (const country of ['de', 'DE']) {
    t.match(await shop.merchant.get(`/v1/reports/countries?${where}&country=${country}`), {
      rows: [{ country: 'DE', clicks: 1 }],
    });
    t.equal((await shop.merchant.get(`/v1/clicks?${where}&country=${country}`)).total_count, 1);
  }
  for (const path of ['reports/countries', 'clicks', 'sales']) {
    const answer = await shop.merchant.request('GET', `/v1/${path}?${where}&country=Germany`);
    t.match(answer, {
      status: 400,
      body: { error: { param: 'country', message: /must be 2 characters, such as DE/ } },
    });
  }
});
