import fc from 'fast-check';
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { effort, seeded } from '../../runner/effort.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { deliver } from '../payouts/rails/provider_server.ts';
import { PaddleAccount } from './paddle_account.ts';

const paddle = await startServer(t, new PaddleAccount());
const rail = await startRail({ provider_urls: { paddle: paddle.url } });

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;
const url = ({ program_id }: Shop) => `${rail.address}/processors/paddle/${program_id}`;
const put = ({ merchant, program_id }: Shop, credentials: Json = paddle.credentials, mode = 'test') =>
  merchant.request('PUT', `/v1/programs/${program_id}/processors/paddle`, { mode, credentials });

interface Opened extends Shop {
  partner_of: Json;
  tell(...events: Json[]): Promise<void>;
  outcomeOf(event: Json): Promise<Json>;
}

async function open(): Promise<Opened> {
  const shop = await openShop(rail);
  await shop.rule();
  const partner_of = await shop.partner();
  const { status, text } = await put(shop);
  if (status !== 200) throw new Error(text);
  return {
    ...shop,
    partner_of,
    async tell(...events) {
      for (const event of events) {
        const answer = await deliver(url(shop), paddle.webhook(event));
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
      }
      const pending = async () => (await shop.list('processor_events', 'status=pending')).length;
      await eventually(async () => (await pending()) === 0, 'all events to be worked on');
    },
    outcomeOf: async ({ event_id }) =>
      (await shop.list('processor_events', `external_event_id=${event_id}`))[0] as Json,
  };
}

const transaction = (id: string, fields: Json = {}, totals: Json = {}): Json => ({
  ...{ id, status: 'completed', customer_id: null, subscription_id: null, discount_id: null, custom_data: null },
  ...{ currency_code: 'USD', origin: 'web', billed_at: '2026-01-02T03:04:05Z', created_at: '2026-01-02T03:04:00Z' },
  details: {
    totals: {
      subtotal: '10000',
      discount: '0',
      tax: '2000',
      total: '12000',
      grand_total: '12000',
      fee: '650',
      ...totals,
    },
    line_items: [
      { product: { id: 'pro_small' }, totals: { total: '2000' } },
      { product: { id: 'pro_large' }, totals: { total: '10000' } },
    ],
  },
  ...fields,
});
const adjustment = (transaction_id: string, action: string, fields: Json = {}): Json => ({
  ...{ id: fresh('adj'), action, transaction_id, customer_id: 'ctm_1', status: 'approved', currency_code: 'USD' },
  ...{ totals: { total: '3000' }, reason: 'error', created_at: '2026-01-03T03:04:05Z', ...fields },
});

t.test('connects: creates the notification setting with exactly its events', async (t) => {
  const shop = await openShop(rail);
  const answer = await put(shop);
  t.match(answer.body, { processor: 'paddle', mode: 'test', status: 'connected', hint: 'cdef' });
  t.match(paddle.settings.at(-1), { type: 'url', destination: new RegExp(`/processors/paddle/${shop.program_id}$`) });
  t.ok(paddle.settings.at(-1)?.subscribed_events.includes('transaction.completed'));
  t.match(await put(shop, { api_key: 'pdl_sdbx_apikey_of_somebody_else' }), {
    status: 400,
    body: { error: { param: 'credentials.api_key' } },
  });
  t.match(await put(shop, paddle.credentials, 'live'), { status: 400, body: { error: { message: /other mode/ } } });
  t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), { processor: 'paddle' });
});

t.test('refuses what is not signed, and takes any of several signatures', async (t) => {
  const shop = await open();
  const event = paddle.emit('customer.created', { id: fresh('ctm'), email: 'a@example.com' });
  const good = paddle.webhook(event);
  const header = good.headers['paddle-signature'] as string;
  const [ts, h1] = header.split(';') as [string, string];
  const old = paddle.webhook(event, { ts: Math.floor(Date.now() / 1000) - 400 });
  for (const signature of [
    '',
    'ts=1;h1=00',
    ts,
    h1,
    `${ts};h1=${'0'.repeat(64)}`,
    old.headers['paddle-signature'] as string,
  ]) {
    const answer = await deliver(url(shop), { ...good, headers: { 'paddle-signature': signature } });
    t.equal(answer.status, 401, signature);
  }
  for (const signature of [`${ts};h1=${'0'.repeat(64)};${h1}`, `${ts};${h1};h1=${'0'.repeat(64)}`]) {
    const answer = await deliver(url(shop), { ...good, headers: { 'paddle-signature': signature } });
    t.equal(answer.status, 200, signature);
  }
  t.equal((await shop.list('processor_events')).length, 1);
});

t.test('transactions become sales, adjustments refunds and disputes, and subscriptions statuses', async (t) => {
  const shop = await open();
  const [customer, first, second, credit] = [fresh('ctm'), fresh('txn'), fresh('txn'), fresh('txn')];
  const custom_data = { rail_click: (await shop.click(shop.partner_of)).id };
  const refund = adjustment(first, 'refund');
  const sub = { id: fresh('sub'), customer_id: customer, status: 'trialing', custom_data };
  const payments = [
    { status: 'error', captured_at: null },
    { status: 'captured', captured_at: '2026-01-20T03:04:05.678Z' },
  ];
  await shop.tell(
    paddle.emit('adjustment.created', { ...refund, status: 'pending_approval' }),
    paddle.emit('adjustment.updated', refund),
    paddle.emit('subscription.created', sub, '2026-01-02T03:04:00Z'),
    paddle.emit('transaction.completed', transaction(first, { customer_id: customer, subscription_id: sub.id })),
    paddle.emit(
      'transaction.completed',
      transaction(second, { customer_id: customer, payments }, { grand_total: '6000' }),
    ),
    paddle.emit('transaction.completed', transaction(credit, { customer_id: customer }, { grand_total: '0' })),
    paddle.emit('subscription.activated', { ...sub, status: 'active' }, '2026-01-05T03:04:00Z'),
  );
  const sale = async (id: string) => (await shop.list('sales', `external_charge_id=${id}`))[0] as Json;
  t.match(await sale(first), {
    ...{ amount_minor: 12_000, tax_minor: 2_000, fee_minor: 650, refunded_minor: 3_000, product_id: 'pro_large' },
    ...{ occurred_at: '2026-01-02T03:04:05.000Z', partner_id: shop.partner_of.id, external_subscription_id: sub.id },
  });
  t.match(await sale(second), {
    ...{ amount_minor: 6_000, tax_minor: 1_000, status: 'paid' },
    occurred_at: '2026-01-20T03:04:05.678Z',
  });
  t.equal((await shop.list('sales')).length, 2);
  t.match((await shop.list('customers'))[0], { external_customer_id: customer, status: 'active', processor: 'paddle' });
  const at = (hour: number) => `2026-02-01T0${hour}:00:00Z`;
  const disputed = (action: string, hour: number) =>
    shop.tell(paddle.emit('adjustment.created', adjustment(second, action, { totals: { total: '6000' } }), at(hour)));
  await disputed('chargeback_warning', 1);
  t.same(
    (await shop.commissionsOf(await sale(second))).map(({ status }) => status),
    ['on_hold'],
  );
  await disputed('chargeback', 2);
  t.match(await sale(second), { status: 'refunded' });
  await disputed('chargeback_reverse', 3);
  t.match(await sale(second), { status: 'paid', refunded_minor: 0 });
  await shop.tell(paddle.emit('adjustment.created', adjustment(second, 'credit'), at(4)));
  t.match(await sale(second), { status: 'paid', refunded_minor: 0 });
  await shop.tell(paddle.emit('adjustment.updated', { ...refund, status: 'reversed' }, at(5)));
  t.match(await sale(first), { refunded_minor: 0 });
});

t.test('a chargeback is lost after a warning, also one that was reversed, in any order', async (t) => {
  const shop = await open();
  const customer = fresh('ctm');
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  const time = (hour: number) => `2026-02-01T0${hour}:00:00Z`;
  const hours = { chargeback_warning: 1, chargeback_warning_reverse: 2, chargeback: 3, chargeback_reverse: 4 };
  const orders: (keyof typeof hours)[][] = [
    ['chargeback_warning', 'chargeback'],
    ['chargeback', 'chargeback_warning'],
    ['chargeback_warning', 'chargeback_warning_reverse', 'chargeback'],
    ['chargeback', 'chargeback_warning_reverse', 'chargeback_warning'],
    ['chargeback_warning', 'chargeback', 'chargeback_warning_reverse'],
  ];
  for (const order of orders)
    for (const is_reversed of [false, true]) {
      const id = fresh('txn');
      await shop.tell(paddle.emit('transaction.completed', transaction(id, { customer_id: customer })));
      const [sale] = (await shop.list('sales', `external_charge_id=${id}`)) as [Json];
      const said = `${order} ${is_reversed}`;
      const told = [...order, ...(is_reversed ? ['chargeback_reverse' as const] : [])];
      for (const action of told) {
        const lost = adjustment(id, action, { totals: { total: '12000' }, created_at: time(hours[action]) });
        const event = paddle.emit('adjustment.created', lost, time(hours[action]));
        await shop.tell(event);
        t.not((await shop.outcomeOf(event)).status, 'failed', said);
      }
      t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { status: is_reversed ? 'paid' : 'refunded' }, said);
      const held = (await shop.commissionsOf(sale)).map(({ amount_minor, status }) => [amount_minor, status]);
      t.same(held, is_reversed ? [[2_400, 'due']] : [], said);
      const open_ones = await shop.list('disputes', `sale_id=${sale.id}&status=open`);
      t.same(open_ones, [], said);
    }
});

t.test('an amount that cannot be read is shown, and nothing is recorded', async (t) => {
  const shop = await open();
  const custom_data = { rail_click: (await shop.click(shop.partner_of)).id };
  for (const grand_total of [undefined, null, '', '12.5', 'much', '99999999999999999']) {
    const odd = transaction(fresh('txn'), { custom_data }, { grand_total });
    const event = paddle.emit('transaction.completed', odd);
    await shop.tell(event);
    const message = 'details.totals.grand_total is not a whole number of minor units.';
    t.match(await shop.outcomeOf(event), { status: 'failed', reason: 'unreadable', message });
  }
  t.same(await shop.list('sales'), []);
});

t.test('a discount is the coupon of the same id', async (t) => {
  const shop = await open();
  const external_id = fresh('dsc');
  const { id } = await shop.coupon({ partner_id: shop.partner_of.id, external_id });
  const sold = paddle.emit(
    'transaction.completed',
    transaction(fresh('txn'), { customer_id: fresh('ctm'), discount_id: external_id }),
  );
  const nobody = paddle.emit('transaction.completed', transaction(fresh('txn'), { customer_id: fresh('ctm') }));
  await shop.tell(sold, nobody);
  await shop.tell(paddle.emit('discount.updated', { id: external_id, status: 'archived' }));
  t.match((await shop.list('sales'))[0], { coupon_id: id });
  t.match(await shop.outcomeOf(nobody), { status: 'ignored', reason: 'unattributed' });
  t.match(await shop.merchant.get(`/v1/coupons/${id}`), { active: false });
});

t.test('a sale earns by a coupon that was active at its time, in any order of the events', async () => {
  const second = fc.nat(9);
  const switched = fc.uniqueArray(fc.record({ second, active: fc.boolean() }), {
    selector: (one) => one.second,
    maxLength: 4,
  });
  const keys = fc.array(fc.double({ noNaN: true }), { minLength: 8, maxLength: 8 });
  type Story = [{ second: number; active: boolean }[], number[], number[] | null];
  const story: fc.Arbitrary<Story> = fc.tuple(
    switched,
    fc.array(second, { minLength: 1, maxLength: 4 }),
    fc.option(keys, { freq: 3 }),
  );
  const off_sold_on: Story = [
    [
      { second: 1, active: false },
      { second: 2, active: true },
    ],
    [3],
    [0, 2, 1],
  ];
  const sold_off: Story = [[{ second: 5, active: false }], [3], null];
  await fc.assert(
    fc.asyncProperty(story, async ([switches, sales, shuffled]) => {
      const shop = await open();
      const external_id = fresh('dsc');
      await shop.coupon({ partner_id: shop.partner_of.id, external_id });
      const at = (second: number) => `2026-02-01T00:00:0${second}Z`;
      const charges = sales.map((second) => ({ second, id: fresh('txn') }));
      const events = [
        ...switches.map(({ second, active }) =>
          paddle.emit('discount.updated', { id: external_id, status: active ? 'active' : 'archived' }, at(second)),
        ),
        ...charges.map(({ second, id }) => {
          const sold = { customer_id: fresh('ctm'), discount_id: external_id, billed_at: at(second) };
          return paddle.emit('transaction.completed', transaction(id, sold), at(second));
        }),
      ];
      const keyed = events.map((event, nth) => ({ event, key: shuffled?.[nth] ?? 0 }));
      for (const { event } of keyed.sort((one, other) => one.key - other.key)) await shop.tell(event);
      const sold = new Set((await shop.list('sales')).map(({ external_charge_id }) => external_charge_id));
      const wasActive = (second: number) =>
        switches.filter((one) => one.second <= second).sort((a, b) => b.second - a.second)[0]?.active ?? true;
      // What is told too late takes nothing from a partner.
      const wrong = charges.filter(({ id, second }) =>
        wasActive(second) ? !sold.has(id) : sold.has(id) && shuffled === null,
      );
      if (wrong.length > 0) throw new Error(`These earned, or earned nothing: ${JSON.stringify(wrong)}`);
    }),
    { ...seeded, numRuns: effort.order_runs, examples: [[off_sold_on], [sold_off]] },
  );
});

t.test('binds a customer by a click whose window had not ended when they signed up', async (t) => {
  const shop = await open();
  const click = await shop.click(shop.partner_of);
  await rail.query(sql`update program.click set created_at = now() - interval '90 days' where id = ${click.id}`);
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const signedUp = (days: number): Json =>
    paddle.emit('customer.created', { id: fresh('ctm'), custom_data: { rail_click: click.id } }, ago(days));
  const [late, in_time] = [signedUp(29), signedUp(31)];
  await shop.tell(late, in_time);
  t.match(await shop.outcomeOf(late), { status: 'ignored', reason: 'click_expired' });
  t.match(await shop.outcomeOf(in_time), { status: 'done', result_id: /^cus_/ });
});

t.test('takes in what never arrived', async (t) => {
  const shop = await open();
  const custom_data = { rail_click: (await shop.click(shop.partner_of)).id };
  const now = new Date().toISOString();
  const ids = Array.from({ length: 120 }, () => fresh('txn'));
  const customer_id = fresh('ctm');
  for (const id of ids) paddle.emit('transaction.completed', transaction(id, { customer_id, custom_data }), now);
  await rail.tick('program/reconcile_processors', now);
  const count = async () => (await shop.merchant.get(`/v1/sales?program_id=${shop.program_id}`)).total_count;
  await eventually(async () => (await count()) === 120, 'all sales');
  t.same(await shop.list('processor_events', 'status=failed'), []);
});

t.test('a time that is none is that of the event, and no event waits for one', async (t) => {
  const shop = await open();
  const external_customer_id = fresh('ctm');
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id });
  const of_customer = { customer_id: external_customer_id };
  const odd = { billed_at: 'soon', payments: [{ status: 'captured', captured_at: '9999-99-99' }] };
  const paid = paddle.emit('transaction.completed', transaction(fresh('txn'), { ...of_customer, ...odd }));
  const subscription = { id: fresh('sub'), ...of_customer, status: 'active' };
  const begun = paddle.emit('subscription.updated', subscription, 'Jan 2 2026 03:04 UTC (Paddle)');
  const refunded = adjustment(paid.data.id, 'refund', { ...of_customer, created_at: 'later' });
  await shop.tell(begun, paid, paddle.emit('adjustment.created', refunded));
  t.match(await shop.outcomeOf(begun), { status: 'done', occurred_at: '2026-01-02T03:04:00.000Z' });
  const [sale] = await shop.list('sales');
  t.match(sale, { occurred_at: '2026-01-02T03:04:05.678Z', refunded_minor: 3_000 });
});
