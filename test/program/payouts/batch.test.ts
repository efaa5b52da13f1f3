import pg from 'pg';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { ofPayout } from '../../../src/program/commissions/commission.ts';
import { generateStep, nextMost } from '../../../src/program/payouts/batches/generate.ts';
import { startOfMonth } from '../../../src/program/payouts/batches/month.ts';
import { programsWithBalances } from '../../../src/program/payouts/batches/monthly.ts';
import { type RangeKey, splitBatch } from '../../../src/program/payouts/batches/range.ts';
import { type Answer, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { setDebtor } from './files/fixture.ts';
import { bank, batchOf, bonus, generated, payee } from './fixture.ts';

const rail = await startRail();

t.test('creates one payout for each partner and currency, of what is due', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [6000, 4000]);
  await bonus(shop, ada, 7, { currency: 'EUR' });
  await shop.events();
  const batch = await batchOf(shop);
  t.match(batch, {
    status: 'ready',
    progress: {
      partners_looked_at: 1,
      payouts: 2,
      amounts: [
        { currency: 'EUR', payouts: 1, amount_minor: 7 },
        { currency: 'USD', payouts: 1, amount_minor: 10_000 },
      ],
    },
  });
  const [usd, eur] = await shop.list('payouts');
  t.match(
    [eur, usd],
    [
      { partner_id: ada.id, amount_minor: 7, currency: 'EUR', commission_count: 1 },
      { partner_id: ada.id, amount_minor: 10_000, currency: 'USD', commission_count: 2, status: 'pending', attempt: 0 },
    ],
  );
  t.match(usd, { method: 'bank_transfer', destination_hint: '3000', livemode: true, batch_id: batch.id });
  t.ok((await shop.list('commissions')).every(({ payout_id, status }) => payout_id !== null && status === 'due'));
  t.same(
    (await shop.events()).map(({ type }) => type),
    ['payout.created', 'payout.created'],
    'they are due later',
  );
});

t.test('covers a period that begins before it ends, also of sales that were recorded after its end', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 30 });
  await shop.rule();
  const partner = await payee(shop, []);
  await shop.sale({ partner_id: partner.id, amount_minor: 60_000, occurred_at: '2026-02-01T00:00:00Z' });
  await batchOf(shop, { cutoff: '2026-07-01T00:00:00Z' });
  t.match(await shop.list('payouts'), [
    { period_start: '2026-03-03T00:00:00.000Z', period_end: '2026-07-01T00:00:00.000Z' },
  ]);
});

t.test('emits payout.due at creation where the time has passed, and once', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000]);
  await shop.events();
  await batchOf(shop, { due_at: '2026-01-01T00:00:00Z' });
  await rail.tick('program/find_due_payouts', '2026-11-22T00:00:00Z');
  t.same(
    (await shop.events()).map(({ type }) => type),
    ['payout.created', 'payout.due'],
  );
});

t.test('creates the batch of a month once, whenever in the month the schedule is run', async (t) => {
  const now = new Date();
  const month = startOfMonth(now.toISOString());
  const before = new Date(Date.parse(month) - 1).toISOString();
  const shop = await openShop(rail, { payout_term: 'net_15' });
  const ada = await payee(shop, []);
  await bonus(shop, ada, 6000, { mature_at: before });
  await bonus(shop, ada, 7000);
  await rail.tick('program/create_monthly_batches', now.toISOString());
  await eventually(async () => (await shop.list('payout_batches')).length > 0, 'the batch of the month');
  await rail.tick('program/create_monthly_batches', month);
  const [{ id }] = (await shop.list('payout_batches')) as [{ id: string }];
  t.match(await generated(shop.merchant, id), {
    cutoff: month,
    scheduled_for: month,
    due_at: new Date(Date.parse(month) + 15 * 86_400_000).toISOString(),
    progress: { amounts: [{ currency: 'USD', payouts: 1, amount_minor: 6000 }] },
  });
  t.equal((await shop.list('payout_batches')).length, 1);
});

t.test('creates no batch for a month that is yet to come', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000]);
  const programs = (cutoff: string) =>
    transaction(rail.store, { organization_id: null, request_id: null }, (tx) => programsWithBalances(tx, cutoff));
  t.ok((await programs(new Date().toISOString())).some(({ id }) => id === shop.program_id));
  t.same(await programs(new Date(Date.now() + 3 * 86_400_000).toISOString()), []);
});

t.test('what was to be clawed back of a payout that a deleted partner never got goes with it', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule();
  await setDebtor(rail, shop);
  const partner = await payee(shop, []);
  const sale = await shop.sale({ partner_id: partner.id, amount_minor: 50_000 });
  await batchOf(shop);
  const [payout] = (await shop.list('payouts')) as [Json];
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await shop.merchant.delete(`/v1/partners/${partner.id}`);
  await shop.refund(sale, { amount_minor: 25_000 });
  await shop.merchant.post(`/v1/payouts/${payout.id}/mark_paid`);
  await shop.merchant.post(`/v1/payouts/${payout.id}/mark_returned`, { reason: 'Account closed' });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 10_000 }, { amount_minor: -5_000, status: 'due' }]);
  await shop.merchant.delete(`/v1/payouts/${payout.id}`);
  t.strictSame(await shop.commissionsOf(sale), []);
});

t.test('creates no monthly batch for what a deleted partner is to give back', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule();
  const ada = await payee(shop, []);
  const sale = await shop.sale({ partner_id: ada.id, amount_minor: 60_000 });
  await batchOf(shop);
  const [payout] = await shop.list('payouts');
  await shop.merchant.post(`/v1/payouts/${payout?.id}/mark_paid`);
  await shop.merchant.request('DELETE', `/v1/partners/${ada.id}`);
  await shop.merchant.post(`/v1/sales/${sale.id}/refund`);
  t.match(await shop.list('commissions', 'kind=clawback'), [{ status: 'due', payout_id: null }]);
  const programs = await transaction(rail.store, { organization_id: null, request_id: null }, (tx) =>
    programsWithBalances(tx, new Date().toISOString()),
  );
  t.notOk(programs.some(({ id }) => id === shop.program_id));
});

t.test('tells why a balance is not paid, and leaves its commissions as they are', async (t) => {
  const shop = await openShop(rail, { require_tax_forms: false });
  const poor = await payee(shop, [4999]);
  const without = await payee(shop, [6000], { payout_method: null });
  const suspended = await payee(shop, [6000]);
  await shop.merchant.patch(`/v1/partners/${suspended.id}`, { status: 'suspended' });
  const elsewhere = await payee(shop, [6000]);
  await shop.merchant.request('PUT', `/v1/partners/${elsewhere.id}/payout_method`, {
    method: 'paypal',
    details: { email: 'ada@example.com' },
  });
  await shop.merchant.patch(`/v1/programs/${shop.program_id}`, { payout_methods: ['bank_transfer'] });
  await shop.events();
  const batch = await batchOf(shop);
  t.match(batch, { status: 'completed', progress: { partners_looked_at: 4, payouts: 0, amounts: [] } });
  const told = (await shop.events()).map(({ type, data }) => [
    type,
    data.partner_id,
    data.reason,
    data.amount_minor,
    data.payout_id,
  ]);
  t.same(
    told.sort(),
    [
      ['payout.not_eligible', poor.id, 'below_minimum', 4999, null],
      ['payout.not_eligible', without.id, 'no_payout_method', 6000, null],
      ['payout.not_eligible', suspended.id, 'partner_suspended', 6000, null],
      ['payout.not_eligible', elsewhere.id, 'payout_method_unavailable', 6000, null],
    ].sort(),
  );
  t.ok((await shop.list('commissions')).every(({ payout_id }) => payout_id === null));
});

t.test('previews with 200, and writes nothing', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [6000]);
  const poor = await payee(shop, [10]);
  const { status, body } = await shop.merchant.request('POST', '/v1/payout_batches', {
    program_id: shop.program_id,
    preview: true,
  });
  t.equal(status, 200);
  t.match(body, {
    payouts_total: 1,
    payouts: [{ partner_id: ada.id, amount_minor: 6000, currency: 'USD', method: bank.method, commission_count: 1 }],
    unpaid: [{ partner_id: poor.id, amount_minor: 10, reason: 'below_minimum' }],
  });
  t.same(await shop.list('payout_batches'), []);
});

t.test('marks a payout as paid, and its commissions', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000, 1]);
  const batch = await batchOf(shop);
  const [payout] = await shop.list('payouts');
  await shop.events();
  const paid = await shop.merchant.post(`/v1/payouts/${payout?.id}/mark_paid`, { external_id: 'tx_1' });
  t.match(paid, { status: 'paid', external_id: 'tx_1' });
  t.same(
    (await shop.events()).map(({ type }) => type),
    ['payout.paid', 'commission.paid', 'commission.paid'],
  );
  t.ok((await shop.list('commissions')).every(({ status, paid_at }) => status === 'paid' && paid_at === paid.paid_at));
  t.match(await shop.merchant.get(`/v1/payout_batches/${batch.id}`), { status: 'completed' });
  t.match(await shop.merchant.request('POST', `/v1/payouts/${payout?.id}/mark_paid`), {
    status: 409,
    body: { error: { code: 'payout_locked' } },
  });
});

t.test(
  'takes a refunded commission out of a payout that was not sent, and deletes it when nothing is left',
  async (t) => {
    const shop = await openShop(rail, { holding_period_days: 0 });
    await shop.rule();
    const ada = await payee(shop, [6000]);
    const sale = await shop.sale({ partner_id: ada.id });
    await batchOf(shop);
    const [payout] = await shop.list('payouts');
    t.match(payout, { amount_minor: 8000, commission_count: 2 });
    await shop.refund(sale, { amount_minor: 5000 });
    t.match(await shop.merchant.get(`/v1/payouts/${payout?.id}`), { amount_minor: 6000, commission_count: 1 });
    t.match(await shop.commissionsOf(sale), [{ amount_minor: 1000, status: 'due', payout_id: null }]);
    await shop.merchant.delete(`/v1/payouts/${payout?.id}`);
    t.same((await shop.merchant.request('GET', `/v1/payouts/${payout?.id}`)).status, 404);
    await batchOf(shop);
    t.match(await shop.list('payouts'), [{ amount_minor: 7000 }]);
  },
);

t.test('needs another user’s approval where the program demands it', async (t) => {
  const shop = await openShop(rail, { payout_approval_required: true });
  await payee(shop, [6000]);
  const batch = await batchOf(shop, { due_at: '2026-01-01T00:00:00Z' });
  t.equal(batch.status, 'awaiting_approval');
  const [payout] = await shop.list('payouts');
  t.match(await shop.merchant.request('POST', `/v1/payouts/${payout?.id}/mark_paid`), { status: 409 });
  t.match(await shop.merchant.request('POST', `/v1/payout_batches/${batch.id}/approve`), {
    status: 403,
    body: { error: { code: 'approval_not_allowed' } },
  });
});

t.test(
  'no key can both create and approve a batch: one of no person creates alone, one of a person approves those of others',
  async (t) => {
    const shop = await openShop(rail, { payout_approval_required: true });
    const { organization_id } = shop.merchant;
    await rail.query(sql`update core.api_key set user_id = null where organization_id = ${organization_id}`);
    const [machine, person] = [shop.merchant, await rail.key(organization_id)];
    for (const [creator, approver] of [
      [machine, machine],
      [person, machine],
      [person, person],
      [machine, person],
    ] as const) {
      await payee(shop, [6000]);
      const { id } = await creator.post('/v1/payout_batches', { program_id: shop.program_id });
      await generated(shop.merchant, id);
      const { status } = await approver.request('POST', `/v1/payout_batches/${id}/approve`);
      t.equal(status, approver === person && creator !== person ? 200 : 403);
    }
  },
);

t.test('refuses a due time that is more than a year ahead', async (t) => {
  const { merchant, program_id } = await openShop(rail);
  const due_in = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
  for (const preview of [true, false]) {
    const far = await merchant.request('POST', '/v1/payout_batches', { program_id, due_at: due_in(367), preview });
    t.match(far, { status: 400, body: { error: { code: 'invalid_parameter', param: 'due_at' } } });
  }
  await merchant.post('/v1/payout_batches', { program_id, due_at: due_in(365) });
});

t.test(
  'a refund that waits for a batch takes the commission out of the new payout, and leaves no clawback',
  async (t) => {
    const shop = await openShop(rail, { holding_period_days: 0, min_payout_minor: 1 });
    await shop.rule();
    const ada = await payee(shop, [6000]);
    const sale = await shop.sale({ partner_id: ada.id });
    const { organization_id } = shop.merchant;
    const opening = { organization_id, request_id: null };
    const [{ id: batch_id }] = (await rail.query<{ id: string }>(sql`
    insert into program.payout_batch (organization_id, id, program_id, stage, cutoff, due_at, approval_required, created_at, updated_at)
    values (${organization_id}, 'batch_' || right(${sale.id}, 26), ${shop.program_id}, 'generating', now(), now(), false, now(), now())
    returning id`)) as [{ id: string }];
    let refund: Promise<Answer> | undefined;
    await transaction(rail.store, opening, async (tx) => {
      const [range] = await splitBatch(tx, batch_id);
      await generateStep(tx, rail.services, range as RangeKey, 1000);
      refund = shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`);
      await eventually(async () => (await rail.waiting()) > 0, 'the refund to wait for the batch');
    });
    t.match(await refund, { status: 200 });
    t.match(await shop.list('payouts'), [{ amount_minor: 6000, commission_count: 1, status: 'pending' }]);
    t.same(await shop.list('commissions', 'kind=clawback'), []);
  },
);

t.test('takes a commission as it is after a change that the batch waited for', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 1 });
  const ada = await payee(shop, [6000, 50]);
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  t.teardown(() => client.end());
  await client.query('begin');
  const change = `update program.commission set amount_minor = 7000 where partner_id = $1 and amount_minor = 6000 and program.because('edited_by_hand')`;
  await client.query(change, [ada.id]);
  const batch = batchOf(shop);
  await eventually(async () => (await rail.waiting()) > 0, 'the batch to wait for the change');
  await client.query('commit');
  t.match((await batch).progress, { partners_looked_at: 1, payouts: 1, amounts: [{ amount_minor: 7050 }] });
  t.match(await shop.list('payouts'), [{ amount_minor: 7050, commission_count: 2 }]);
});

t.test('takes what another transaction makes due meanwhile', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 1 });
  const ada = await payee(shop, [6000, 50]);
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  t.teardown(() => client.end());
  const change = (status: string) =>
    client.query(
      `update program.commission set status = $2, mature_at = created_at - interval '1 hour' where partner_id = $1 and amount_minor = 50`,
      [ada.id, status],
    );
  await change('pending');
  await client.query('begin');
  await change('due');
  const batch = batchOf(shop);
  await eventually(async () => (await rail.waiting()) > 0, 'the batch to wait for the commission');
  await client.query('commit');
  t.match((await batch).progress, { payouts: 1, amounts: [{ amount_minor: 6050 }] });
});

t.test('looks at as many partners in a step as the database has time for', (t) => {
  t.equal(nextMost(250, 100), 250);
  t.equal(nextMost(250, 125), 200);
  t.equal(nextMost(250, 1), 500, 'at most twice as many');
  t.equal(nextMost(250, 10_000), 125, 'at least half');
  t.equal(nextMost(2_000, 1), 2_000);
  t.equal(nextMost(25, 10_000), 25);
  t.end();
});

t.test('does not take a blank external id for the id of a payment', async (t) => {
  const shop = await openShop(rail);
  await payee(shop, [6000]);
  await batchOf(shop);
  const [payout] = await shop.list('payouts');
  for (const external_id of ['', ' ', '\t\u00a0']) {
    t.match(await shop.merchant.request('POST', `/v1/payouts/${payout?.id}/mark_paid`, { external_id }), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: 'external_id' } },
    });
  }
  t.match(await shop.merchant.get(`/v1/payouts/${payout?.id}`), { status: 'pending' });
});

t.test('checks only the payout whose commission is changed', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [6000]);
  await payee(shop, [7000]);
  await batchOf(shop);
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  t.teardown(() => client.end());
  await client.query(`begin; set local track_functions = 'all'`);
  await client.query(`update program.commission set note = 'Changed' where partner_id = $1`, [ada.id]);
  const { rows } = await client.query<{ calls: string }>(
    `select calls from pg_stat_xact_user_functions where schemaname = 'program' and funcname = 'payout_fault'`,
  );
  await client.query('rollback');
  t.same(rows, [{ calls: '1' }]);
});

t.test('finds the commissions of a payout by an index, and changes them in place', async (t) => {
  const client = await rail.store.database.connect();
  await client.query('begin; set local enable_seqscan = off');
  const { rows } = await client.query(
    `explain select from program.commission t where t.organization_id = 'org_x' and ${ofPayout('pyt_x').sql.replaceAll('?', "'pyt_x'")}`,
  );
  await client.query('rollback');
  const { rows: indexes } = await client.query(`
      select i.indexrelid::regclass from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_am a on a.oid = c.relam and a.amname <> 'brin'
      where i.indrelid = 'program.commission'::regclass and pg_get_indexdef(i.indexrelid) ~ 'payout_id|changed_in|updated_at'`);
  client.release();
  t.match(JSON.stringify(rows), /Index (Only )?Scan using payout_commission_pkey/);
  t.match(JSON.stringify(rows), /Index (Only )?Scan using commission_pkey/);
  t.same(indexes, [], 'no index holds what a batch changes');
});
