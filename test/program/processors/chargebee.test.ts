import t from 'tap';
import { eventually, type Json, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { deliver } from '../payouts/rails/provider_server.ts';
import { ChargebeeSite } from './chargebee_site.ts';

const chargebee = await startServer(t, new ChargebeeSite());
const rail = await startRail({ provider_urls: { chargebee: chargebee.url } });
const at = 1_764_000_000;

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;
const url = ({ program_id }: Shop) => `${rail.address}/processors/chargebee/${program_id}`;
const put = ({ merchant, program_id }: Shop, credentials: Json = chargebee.credentials, mode = 'test') =>
  merchant.request('PUT', `/v1/programs/${program_id}/processors/chargebee`, { mode, credentials });

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
        const answer = await deliver(url(shop), chargebee.webhook(event));
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
      }
      const pending = async () => (await shop.list('processor_events', 'status=pending')).length;
      await eventually(async () => (await pending()) === 0, 'all events to be worked on');
    },
    outcomeOf: async ({ id }) => (await shop.list('processor_events', `external_event_id=${id}`))[0] as Json,
  };
}

const payment = (id: string, customer_id: string, linked: [string, number][], fields: Json = {}): Json => ({
  transaction: {
    ...{ id, customer_id, type: 'payment', status: 'success', currency_code: 'USD', date: at },
    amount: linked.reduce((sum, [, amount]) => sum + amount, 0),
    linked_invoices: linked.map(([invoice_id, applied_amount]) => ({ invoice_id, applied_amount })),
  },
  invoice: {
    ...{ id: linked[0]?.[0], total: 12_000, tax: 2_000, discounts: [] },
    line_items: [{ entity_id: 'plan-basic', amount: 10_000 }],
  },
  customer: { id: customer_id, email: 'grace@customer.example.com', first_name: 'Grace', last_name: 'Hopper' },
  ...fields,
});

t.test('connects to a site, and refuses keys and sites that are wrong', async (t) => {
  const shop = await openShop(rail);
  t.match((await put(shop)).body, { processor: 'chargebee', account: 'acme-test', hint: 'cdef', status: 'connected' });
  for (const [credentials, mode, param] of [
    [{ ...chargebee.credentials, api_key: 'test_of_somebody_else' }, 'test', 'credentials.api_key'],
    [chargebee.credentials, 'live', 'credentials.site'],
    [{ ...chargebee.credentials, webhook_password: 'short' }, 'test', 'credentials.webhook_password'],
  ] as const)
    t.match(await put(shop, credentials, mode), { status: 400, body: { error: { param } } });
});

t.test('a webhook needs the password, and what it says decides nothing', async (t) => {
  const shop = await open();
  const customer = fresh('cust');
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  const event = chargebee.emit('payment_succeeded', payment(fresh('txn'), customer, [[fresh('inv'), 12_000]]));
  for (const webhook of [chargebee.webhook(event, 'wrong-horse-battery'), { ...chargebee.webhook(event), headers: {} }])
    t.match(await (await deliver(url(shop), webhook)).json(), {
      error: { code: 'signature_invalid', message: /^The user name or the password is not/ },
    });
  t.same(await shop.list('processor_events'), []);
  const forged = structuredClone(event);
  forged.content.transaction.linked_invoices[0].applied_amount = 99_999_999;
  await shop.tell(forged, { ...forged, id: 'ev_of_nobody' });
  const sales = await shop.list('sales');
  t.equal(sales.length, 1);
  t.match(sales[0], { amount_minor: 12_000, tax_minor: 2_000, product_id: 'plan-basic' });
  t.match(await shop.outcomeOf({ id: 'ev_of_nobody' }), { status: 'ignored', reason: 'unknown_event' });
});

t.test(
  'payments become sales by invoice, refunds and reversals take back, and subscriptions set statuses',
  async (t) => {
    const shop = await open();
    const [customer, one, two] = [fresh('cust'), fresh('txn'), fresh('txn')];
    const [first, second] = [fresh('inv'), fresh('inv')];
    const who = {
      id: customer,
      email: 'grace@customer.example.com',
      cf_rail_click: (await shop.click(shop.partner_of)).id,
    };
    const subscription = { id: fresh('sub'), customer_id: customer, status: 'in_trial' };
    const refund = {
      id: fresh('txn'),
      type: 'refund',
      status: 'success',
      amount: 3_000,
      refunded_txn_id: one,
      customer_id: customer,
      date: at + 50,
    };
    const early = chargebee.emit('payment_refunded', { transaction: refund, customer: who });
    await shop.tell(
      early,
      chargebee.emit('customer_created', { customer: who }),
      chargebee.emit('subscription_created', { subscription, customer: who }),
      chargebee.emit('payment_succeeded', payment(one, customer, [[first, 6_000]])),
      chargebee.emit(
        'payment_succeeded',
        payment(two, customer, [
          [first, 6_000],
          [second, 500],
        ]),
      ),
      chargebee.emit(
        'subscription_activated',
        { subscription: { ...subscription, status: 'active' }, customer: who },
        { occurred_at: at + 60 },
      ),
    );
    const found = (await shop.list('sales')).map(({ external_charge_id, amount_minor, refunded_minor }) => [
      external_charge_id,
      amount_minor,
      refunded_minor,
    ]);
    t.same(
      found.sort(),
      [
        [`${first}_${one}`, 6_000, 3_000],
        [`${first}_${two}`, 6_000, 0],
        [`${second}_${two}`, 500, 0],
      ].sort(),
    );
    t.match((await shop.list('customers'))[0], {
      external_customer_id: customer,
      status: 'active',
      partner_id: shop.partner_of.id,
    });
    const reversal = {
      id: fresh('txn'),
      type: 'payment_reversal',
      status: 'success',
      amount: 6_000,
      linked_payments: [{ id: two }],
      customer_id: customer,
      date: at + 70,
    };
    await shop.tell(
      chargebee.emit('transaction_created', { transaction: reversal, customer: who }, { occurred_at: at + 70 }),
    );
    t.match((await shop.list('sales', `external_charge_id=${first}_${two}`))[0], { status: 'refunded' });
    t.match((await shop.list('disputes'))[0], { status: 'lost', external_dispute_id: reversal.id });
    await shop.tell(
      chargebee.emit(
        'subscription_cancelled',
        { subscription: { ...subscription, status: 'cancelled' }, customer: who },
        { occurred_at: at + 80 },
      ),
    );
    t.match((await shop.list('customers'))[0]?.status, /cancelled|refunded/);
  },
);

t.test('matches coupons by their id, and refuses events of another version', async (t) => {
  const shop = await open();
  const [external_id, customer] = [fresh('coupon'), fresh('cust')];
  await shop.coupon({ partner_id: shop.partner_of.id, external_id });
  const content = payment(fresh('txn'), customer, [[fresh('inv'), 12_000]]);
  content.invoice.discounts = [{ entity_type: 'document_level_coupon', entity_id: external_id, amount: 100 }];
  const odd = chargebee.emit('payment_succeeded', payment(fresh('txn'), customer, [[fresh('inv'), 100]]), {
    api_version: 'v1',
  });
  await shop.tell(chargebee.emit('payment_succeeded', content), odd);
  t.equal((await shop.list('sales')).length, 1);
  t.match((await shop.list('sales'))[0], { coupon_id: /^cpn_/, partner_id: shop.partner_of.id });
  t.match(await shop.outcomeOf(odd), { status: 'ignored', reason: 'unknown_version' });
});

t.test('an invoice that the API recorded is not recorded again, in however many parts it is paid', async (t) => {
  const shop = await open();
  const [external_customer_id, invoice] = [fresh('cust'), fresh('inv')];
  const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id, external_customer_id });
  const sale = await shop.sale({ customer_id, external_charge_id: invoice, amount_minor: 12_000 });
  const part = () => payment(fresh('txn'), external_customer_id, [[invoice, 6_000]]);
  const events = [chargebee.emit('payment_succeeded', part()), chargebee.emit('payment_succeeded', part())];
  await shop.tell(...events);
  for (const event of events)
    t.match(await shop.outcomeOf(event), { status: 'done', reason: 'already_recorded', result_id: sale.id });
  t.equal((await shop.list('sales')).length, 1);
});

t.test('taxes and products of all invoices of a payment are theirs', async (t) => {
  const shop = await open();
  const [external_customer_id, one, two] = [fresh('cust'), fresh('inv'), fresh('inv')];
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id });
  const line_items = [{ entity_id: 'plan-large', amount: 20_000 }];
  chargebee.invoices.set(two, { id: two, total: 24_000, tax: 4_000, discounts: [], line_items });
  await shop.tell(
    chargebee.emit(
      'payment_succeeded',
      payment(fresh('txn'), external_customer_id, [
        [one, 12_000],
        [two, 24_000],
      ]),
    ),
  );
  const sales = (await shop.list('sales')).map(({ amount_minor, tax_minor, product_id }) => [
    ...[amount_minor, tax_minor, product_id],
  ]);
  t.same(
    sales.sort(([a], [b]) => a - b),
    [
      [12_000, 2_000, 'plan-basic'],
      [24_000, 4_000, 'plan-large'],
    ],
  );
});

t.test('takes in what never arrived', async (t) => {
  const shop = await open();
  const customer = fresh('cust');
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  const occurred_at = Math.floor(Date.now() / 1000);
  for (let nth = 0; nth < 120; nth++)
    chargebee.emit('payment_succeeded', payment(fresh('txn'), customer, [[fresh('inv'), 100]]), { occurred_at });
  await rail.tick('program/reconcile_processors', new Date().toISOString());
  const count = async () => (await shop.merchant.get(`/v1/sales?program_id=${shop.program_id}`)).total_count;
  await eventually(async () => (await count()) === 120, 'all sales');
  t.same(await shop.list('processor_events', 'status=failed'), []);
});

t.test('a refund of a payment of several invoices takes back from each', async (t) => {
  const shop = await open();
  const [customer, payment_id] = [fresh('cust'), fresh('txn')];
  const [first, second] = [fresh('inv'), fresh('inv')];
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  const refunded = (notes: [invoice: string, amount: number][]) => ({
    transaction: {
      ...{ id: fresh('txn'), type: 'refund', status: 'success', refunded_txn_id: payment_id, customer_id: customer },
      ...{ amount: notes.reduce((sum, [, amount]) => sum + amount, 0), currency_code: 'USD', date: at + 50 },
      linked_credit_notes: notes.map(([cn_reference_invoice_id, applied_amount]) => ({
        ...{ cn_id: fresh('cn'), cn_reference_invoice_id, applied_amount },
      })),
    },
    customer: { id: customer },
  });
  const early = chargebee.emit('payment_refunded', refunded([[second, 100]]));
  await shop.tell(
    early,
    chargebee.emit(
      'payment_succeeded',
      payment(payment_id, customer, [
        [first, 6_000],
        [second, 500],
      ]),
    ),
  );
  const left = async () =>
    Object.fromEntries(
      (await shop.list('sales')).map((sale) => [sale.external_charge_id, sale.amount_minor - sale.refunded_minor]),
    );
  t.same(await left(), { [`${first}_${payment_id}`]: 6_000, [`${second}_${payment_id}`]: 400 });
  const rest = chargebee.emit(
    'payment_refunded',
    refunded([
      [first, 6_000],
      [second, 400],
    ]),
  );
  await shop.tell(rest);
  t.same(await left(), { [`${first}_${payment_id}`]: 0, [`${second}_${payment_id}`]: 0 });
  t.match(await shop.outcomeOf(rest), { status: 'done' });
});

t.test('a payment of several invoices that is reversed is lost for each', async (t) => {
  for (const is_told_first of [true, false]) {
    const shop = await open();
    const [customer, payment_id, id] = [fresh('cust'), fresh('txn'), fresh('txn')];
    const [first, second] = [fresh('inv'), fresh('inv')];
    await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
    const parts: [string, number][] = [
      [first, 6_000],
      [second, 4_000],
    ];
    const paid = chargebee.emit('payment_succeeded', payment(payment_id, customer, parts));
    const reversed = chargebee.emit('transaction_created', {
      transaction: {
        ...{ id, type: 'payment_reversal', status: 'success', reference_transaction_id: payment_id, amount: 10_000 },
        ...{ customer_id: customer, currency_code: 'USD', date: at + 100 },
      },
      customer: { id: customer },
    });
    for (const event of is_told_first ? [reversed, paid] : [paid, reversed]) await shop.tell(event);
    for (const sale of await shop.list('sales')) t.match(sale, { status: 'refunded' });
    t.same((await shop.list('disputes')).map((one) => [one.external_dispute_id, one.status, one.amount_minor]).sort(), [
      [id, 'lost', 6_000],
      [`${id}_${second}`, 'lost', 4_000],
    ]);
    t.match(await shop.outcomeOf(reversed), { status: 'done' });
  }
});

/** A refund of a payment, of an invoice if one is named. */
const refundOf = (payment_id: string, customer: string, amount: number, invoice_id?: string): Json => ({
  transaction: {
    ...{ id: fresh('txn'), type: 'refund', status: 'success', refunded_txn_id: payment_id, customer_id: customer },
    ...{ amount, currency_code: 'USD', date: at + 50 },
    ...(invoice_id === undefined
      ? {}
      : { linked_credit_notes: [{ cn_id: fresh('cn'), cn_reference_invoice_id: invoice_id, applied_amount: amount }] }),
  },
  customer: { id: customer },
});

t.test('what takes back a payment that a request recorded counts, whoever paid', async (t) => {
  for (const is_told_first of [true, false])
    for (const idOf of [
      (_: string, payment_id: string) => payment_id,
      (invoice_id: string) => invoice_id,
      (invoice_id: string, payment_id: string) => `${invoice_id}_${payment_id}`,
    ]) {
      const shop = await open();
      const [invoice_id, payment_id, customer] = [fresh('inv'), fresh('txn'), fresh('cust')];
      const click_id = (await shop.click(shop.partner_of)).id;
      const sale = await shop.sale({
        external_charge_id: idOf(invoice_id, payment_id),
        click_id,
        occurred_at: '2025-11-24T16:00:00Z',
      });
      const paid = chargebee.emit('payment_succeeded', payment(payment_id, customer, [[invoice_id, 10_000]]));
      const refunded = chargebee.emit('payment_refunded', refundOf(payment_id, customer, 3_000));
      for (const event of is_told_first ? [refunded, paid] : [paid, refunded]) await shop.tell(event);
      const [found, ...others] = await shop.list('sales');
      t.same(others, []);
      t.match(found, { id: sale.id, refunded_minor: 3_000 });
    }
});

t.test("what takes back a payment of nobody is nobody's, also where the payment never arrived", async (t) => {
  const shop = await open();
  const [invoice_id, payment_id, customer] = [`INV_${fresh('inv')}`, fresh('txn'), fresh('cust')];
  const paid = chargebee.emit('payment_succeeded', payment(payment_id, customer, [[invoice_id, 10_000]]));
  const refunded = chargebee.emit('payment_refunded', refundOf(payment_id, customer, 3_000, invoice_id));
  await shop.tell(refunded);
  t.match(await shop.outcomeOf(refunded), { status: 'waiting', waiting_for: `${invoice_id}_${payment_id}` });
  await rail.tick('program/sweep_processor_events', new Date(Date.now() + 73 * 3_600_000).toISOString());
  await eventually(async () => (await shop.outcomeOf(refunded)).status === 'ignored', 'the refund to be resolved');
  t.match(await shop.outcomeOf(refunded), { reason: 'unattributed' });
  t.match(await shop.outcomeOf(paid), { status: 'ignored', reason: 'unattributed' });
});

t.test('a refund for a chargeback or a fraud is a dispute that is lost, in any order', async (t) => {
  for (const is_told_first of [true, false])
    for (const [method, cn_reason_code, reason] of [
      ['chargeback', 'other', 'chargeback'],
      ['card', 'chargeback', 'chargeback'],
      ['card', 'fraudulent', 'fraudulent'],
      ['card', 'waiver', undefined],
    ] as const) {
      const shop = await open();
      const [invoice_id, payment_id, external_customer_id] = [fresh('inv'), fresh('txn'), fresh('cust')];
      await shop.customer({ partner_id: shop.partner_of.id, external_customer_id });
      const paid = chargebee.emit(
        'payment_succeeded',
        payment(payment_id, external_customer_id, [[invoice_id, 10_000]]),
      );
      const content = refundOf(payment_id, external_customer_id, 3_000, invoice_id);
      content.transaction.payment_method = method;
      content.transaction.linked_credit_notes[0].cn_reason_code = cn_reason_code;
      const taken = chargebee.emit('payment_refunded', content);
      for (const event of is_told_first ? [taken, paid] : [paid, taken]) await shop.tell(event);
      const { id } = content.transaction;
      t.match(await shop.outcomeOf(taken), { status: 'done' });
      t.match(await shop.list('refunds'), [
        { external_refund_id: id, amount_minor: 3_000, reason: reason === undefined ? null : 'dispute_lost' },
      ]);
      const disputed = (await shop.list('disputes')).map((one) => [one.external_dispute_id, one.status, one.reason]);
      t.same(disputed, reason === undefined ? [] : [[id, 'lost', reason]]);
      t.equal((await shop.list('refunds')).length, 1);
    }
});

t.test(
  'a payment of nobody that a request records by any of its ids has the refunds that were told before',
  async (t) => {
    for (const nth of [0, 1, 2]) {
      const shop = await open();
      const [txn, customer, invoice] = [fresh('txn'), fresh('cust'), fresh('inv')];
      const of_nobody = payment(txn, customer, [[invoice, 9_900]]);
      await shop.tell(chargebee.emit('payment_succeeded', of_nobody));
      const refund = {
        ...{
          id: fresh('txn'),
          customer_id: customer,
          type: 'refund',
          status: 'success',
          currency_code: 'USD',
          date: at,
        },
        ...{ amount: 900, refunded_txn_id: txn },
      };
      await shop.tell(chargebee.emit('payment_refunded', { transaction: refund, customer: { id: customer } }));
      const external_charge_id = [txn, invoice, `${invoice}_${txn}`][nth];
      const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id });
      await shop.sale({ customer_id, external_charge_id, amount_minor: 9_900 });
      const isRefunded = async () => (await shop.list('sales'))[0]?.refunded_minor === 900;
      await eventually(isRefunded, `the refund of ${external_charge_id}`);
      t.equal((await shop.list('sales')).length, 1);
    }
  },
);

t.test('a refund for a chargeback that a request tells too, without an id, counts once', async (t) => {
  for (const is_requested_first of [true, false]) {
    const shop = await open();
    const [invoice_id, payment_id, external_customer_id] = [fresh('inv'), fresh('txn'), fresh('cust')];
    await shop.customer({ partner_id: shop.partner_of.id, external_customer_id });
    await shop.tell(
      chargebee.emit('payment_succeeded', payment(payment_id, external_customer_id, [[invoice_id, 10_000]])),
    );
    const [sale] = (await shop.list('sales')) as [Json];
    const content = refundOf(payment_id, external_customer_id, 3_000, invoice_id);
    content.transaction.linked_credit_notes[0].cn_reason_code = 'fraudulent';
    const tell = () => shop.tell(chargebee.emit('payment_refunded', content));
    const refunded_at = new Date(at * 1_000).toISOString();
    const request = () =>
      shop.merchant.request('POST', `/v1/sales/${sale.id}/refund`, { amount_minor: 3_000, refunded_at });
    if (!is_requested_first) await tell();
    t.equal((await request()).status, is_requested_first ? 200 : 409);
    if (is_requested_first) await tell();
    t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: 3_000 });
    const [{ refund_id }] = (await shop.list('disputes', 'status=lost')) as [Json];
    t.match(await shop.list('refunds'), [{ id: refund_id, external_refund_id: content.transaction.id }]);
  }
});

t.test(
  'an invoice of nobody that is paid in two parts and that a request records has the refunds of both',
  async (t) => {
    const shop = await open();
    const [customer, invoice, other] = [fresh('cust'), fresh('inv'), fresh('txn')];
    const parts = [fresh('txn'), fresh('txn')].map((txn) => ({
      txn,
      part: payment(txn, customer, [[invoice, 5_000]]),
    }));
    for (const { txn, part } of parts) {
      await shop.tell(chargebee.emit('transaction_created', part));
      await shop.tell(chargebee.emit('payment_succeeded', part));
      await shop.tell(chargebee.emit('payment_refunded', refundOf(txn, customer, 400)));
    }
    const stranger = chargebee.emit('payment_succeeded', payment(other, fresh('cust'), [[fresh('inv'), 5_000]]));
    await shop.tell(stranger);
    const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id });
    await shop.sale({ customer_id, external_charge_id: invoice, amount_minor: 10_000 });
    await eventually(async () => (await shop.list('sales'))[0]?.refunded_minor === 800, 'both refunds');
    t.equal((await shop.list('sales')).length, 1);
    t.match(await shop.outcomeOf(stranger), { reason: 'unattributed' });
  },
);
