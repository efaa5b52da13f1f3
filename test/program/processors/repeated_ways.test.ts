import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { deliver } from '../payouts/rails/provider_server.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop, type StripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });
const { at } = objects;

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;

/** A customer at Stripe whom a click brought. */
async function referred(shop: StripeShop, click?: string): Promise<string> {
  const id = fresh('cus');
  const client_reference_id = click ?? (await shop.click(shop.partner_of)).id;
  await shop.tell(
    stripe.emit('checkout.session.completed', objects.checkout(fresh('cs'), { customer: id, client_reference_id })),
  );
  return id;
}

/** An invoice that a customer has paid. */
async function paid(shop: StripeShop, customer: string, fields: Json = {}) {
  const [id, payment] = [fresh('in'), fresh('pi')];
  await shop.tell(
    stripe.emit('invoice.paid', objects.invoice(id, customer, fields)),
    stripe.emit('invoice_payment.paid', objects.invoicePayment(id, payment)),
  );
  const [sale] = await shop.list('sales', `external_charge_id=${id}`);
  return { id, payment, sale: sale as Json };
}

function* ordersOf<Item>(items: Item[]): Generator<Item[]> {
  if (items.length === 0) yield [];
  for (const [nth, first] of items.entries())
    for (const rest of ordersOf(items.toSpliced(nth, 1))) yield [first, ...rest];
}

t.test('a second refund after one that failed is taken, in whichever order that is told', async (t) => {
  for (const [amount, orders] of [
    [9_900, [...ordersOf([0, 1, 2])]],
    [6_000, [[0, 2, 1]]],
  ] as const) {
    const shop = await openStripeShop(rail, stripe);
    for (const order of orders) {
      const customer = await referred(shop);
      const { sale, payment } = await paid(shop, customer, { created: at });
      const [failing, standing] = [fresh('re'), fresh('re')];
      const refund = (id: string, status: string) => objects.refund(id, payment, { status, amount, created: at + 60 });
      const events = [
        stripe.emit('refund.created', refund(failing, 'succeeded'), { created: at + 60 }),
        stripe.emit('refund.failed', refund(failing, 'failed'), { created: at + 120 }),
        stripe.emit('refund.created', refund(standing, 'succeeded'), { created: at + 180 }),
      ];
      for (const step of order) await shop.tell(events[step] as Json);
      const after = await shop.merchant.get(`/v1/sales/${sale.id}`);
      t.equal(after.refunded_minor, amount, `${amount} in the order ${order}`);
      const earned = await shop.commissionsOf(sale);
      t.equal(
        earned.reduce((sum, { amount_minor }) => sum + amount_minor, 0),
        (9_900 - amount) / 5,
      );
      const [known] = await shop.list('customers', `external_customer_id=${customer}`);
      t.equal(known?.status, amount === 9_900 ? 'refunded' : 'active');
    }
  }
});

t.test('a refund that found nothing left is taken once a dispute is won after all', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const { sale, payment } = await paid(shop, await referred(shop), { created: at });
  const dispute = fresh('dp');
  const decided = (type: string, status: string, created: number) =>
    stripe.emit(`charge.dispute.${type}`, objects.dispute(dispute, payment, { status }), { created });
  const refund = stripe.emit('refund.created', objects.refund(fresh('re'), payment, { amount: 3_000 }), {
    created: at + 50,
  });
  await shop.tell(decided('closed', 'lost', at + 60));
  await shop.tell(refund); // once the dispute has taken all
  t.match(await shop.outcomeOf(refund), { status: 'ignored', reason: 'sale_already_refunded' });
  await shop.tell(decided('funds_reinstated', 'won', at + 90));
  await shop.settled();
  t.match(await shop.outcomeOf(refund), { status: 'done' });
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: 3_000, status: 'partially_refunded' });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 1_380 }]);
});

t.test('a customer who comes back by the same click under another id at Stripe is credited again', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const click = (await shop.click(shop.partner_of)).id;
  for (const nth of [1, 2, 3]) {
    const customer = await referred(shop, click);
    const { sale } = await paid(shop, customer, { created: at + nth });
    t.match(sale, { partner_id: shop.partner_of.id }, `purchase ${nth}`);
  }
  for (const nth of [1, 2]) {
    const [session, payment_intent] = [fresh('cs'), fresh('pi')];
    const guest = { mode: 'payment', payment_intent, client_reference_id: click, created: at + 10 + nth };
    await shop.tell(stripe.emit('checkout.session.completed', objects.checkout(session, guest)));
    const [sale] = await shop.list('sales', `external_charge_id=${payment_intent}`);
    t.match(sale, { partner_id: shop.partner_of.id, amount_minor: 9_900 }, `guest ${nth}`);
  }
});

t.test('a refund or dispute in another currency than its sale is refused, and says so', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const { sale, payment } = await paid(shop, await referred(shop));
  const refund = stripe.emit(
    'refund.created',
    objects.refund(fresh('re'), payment, { amount: 5_000, currency: 'jpy' }),
  );
  const dispute = stripe.emit(
    'charge.dispute.closed',
    objects.dispute(fresh('dp'), payment, { status: 'lost', amount: 9_000, currency: 'eur' }),
  );
  await shop.tell(refund, dispute);
  for (const event of [refund, dispute])
    t.match(await shop.outcomeOf(event), { status: 'failed', reason: 'currency_mismatch', message: /in USD/ });
  t.equal((await shop.merchant.get(`/v1/sales/${sale.id}`)).refunded_minor, 0);
});

t.test('what the API recorded under another id of a payment is not recorded again', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const [known] = (await shop.list('customers')) as [Json];
  const sold = (external_charge_id: string) =>
    shop.sale({ customer_id: known.id, external_charge_id, amount_minor: 9_900 });
  // A charge by itself, under the charge's id.
  const charge = objects.charge(fresh('ch'), { customer });
  await sold(charge.id);
  await shop.tell(stripe.emit('charge.succeeded', charge));
  // A Checkout Session, under the charge's id.
  const [by_session, session_payment] = [fresh('ch'), fresh('pi')];
  stripe.put(objects.charge(by_session, { customer, payment_intent: session_payment }));
  await sold(by_session);
  await shop.tell(
    stripe.emit(
      'checkout.session.completed',
      objects.checkout(fresh('cs'), { mode: 'payment', customer, payment_intent: session_payment }),
    ),
  );
  // A Checkout Session, under its own id.
  const [session, payment] = [fresh('cs'), fresh('pi')];
  await sold(session);
  const bought = { mode: 'payment', customer, payment_intent: payment };
  await shop.tell(stripe.emit('checkout.session.completed', objects.checkout(session, bought)));
  // Invoices, under the payment's id and the charge's.
  for (const kind of ['pi', 'ch']) {
    const [invoice, payment_intent, id] = [fresh('in'), fresh('pi'), fresh('ch')];
    stripe.put(objects.charge(id, { customer, payment_intent }));
    stripe.put(objects.invoicePayment(invoice, payment_intent));
    const sale = await sold(kind === 'pi' ? payment_intent : id);
    const event = stripe.emit('invoice.paid', objects.invoice(invoice, customer));
    await shop.tell(event);
    t.match(await shop.outcomeOf(event), { status: 'done', result_id: sale.id, reason: 'already_recorded' });
    const refund = stripe.emit('refund.created', objects.refund(fresh('re'), payment_intent));
    await shop.tell(refund);
    t.equal((await shop.merchant.get(`/v1/sales/${sale.id}`)).status, 'refunded', 'and its refund is known');
  }
  t.equal((await shop.list('sales')).length, 5);
});

t.test('a payment that takes days to arrive is a sale of when it has', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const click = (await shop.click(shop.partner_of)).id;
  const payment_intent = fresh('pi');
  const session = objects.checkout(fresh('cs'), {
    ...{ mode: 'payment', payment_intent, client_reference_id: click, payment_status: 'unpaid', created: at },
  });
  await shop.tell(stripe.emit('checkout.session.completed', session, { created: at + 60 }));
  t.same(await shop.list('sales'), []);
  const arrived = { ...session, payment_status: 'paid' };
  const days = 4 * 86_400;
  await shop.tell(stripe.emit('checkout.session.async_payment_succeeded', arrived, { created: at + days }));
  t.match(await shop.list('sales'), [{ occurred_at: new Date((at + days) * 1000).toISOString() }]);
});

t.test('two programs of one account have their own inboxes, and each credits its own partners', async (t) => {
  const [one, other] = [await openStripeShop(rail, stripe), await openStripeShop(rail, stripe)];
  const customer = await referred(one);
  const event = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer));
  await one.tell(event);
  await other.tell(event);
  t.match(await one.outcomeOf(event), { status: 'done' });
  t.match(await other.outcomeOf(event), { status: 'ignored', reason: 'unattributed' });
});

t.test('nothing of test mode becomes a sale once the program is connected in live mode', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const click = (await shop.click(shop.partner_of)).id;
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const { secret } = stripe.endpoints.at(-1) as Json;
  const live = { secret_key: 'rk_live_0123456789abcdefgh' };
  const test_key = stripe.credentials.secret_key;
  const paidBy = () =>
    stripe.emit('charge.succeeded', objects.charge(fresh('ch'), { metadata: { rail_click: click } }));
  // The test key is refused, and an event waits for another one.
  stripe.credentials.secret_key = live.secret_key;
  t.match((await shop.merchant.post(`${path}/test`, {})).status, 'disconnected');
  const waiting = paidBy();
  await shop.send(waiting);
  t.equal((await shop.merchant.request('PUT', path, { mode: 'live', credentials: live })).status, 200);
  await shop.settled();
  t.match(await shop.outcomeOf(waiting), { status: 'ignored', reason: 'other_mode' });
  // An event that was sent before arrives late.
  const url = `${rail.address}/processors/stripe/${shop.program_id}`;
  const late = stripe.webhook(paidBy(), { secret });
  await eventually(async () => (await deliver(url, late)).status === 401, 'the secret of test mode to be refused');
  await shop.settled();
  t.same(await shop.list('sales'), []);
  stripe.credentials.secret_key = test_key;
});

t.test('takes the secret of an endpoint that a person created, or of `stripe listen`', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const webhook_url = `${rail.services.base_url}/processors/stripe/${shop.program_id}`;
  const tidied = async () =>
    (await rail.query(sql`select from core.jobs() j where j.task = 'program/tidy_processor'`)).length === 0;
  await eventually(tidied, 'the first connection to be tidied');
  const by_hand = { ...stripe.endpoints.at(-1), id: 'we_by_hand', url: webhook_url, created: at };
  stripe.endpoints.push(by_hand);
  const webhook_secret = 'whsec_0123456789abcdef0123456789abcdef';
  const put = (secret: string) =>
    shop.merchant.request('PUT', path, {
      mode: 'test',
      credentials: { ...stripe.credentials, webhook_secret: secret },
    });
  t.match(await put('0123'), { status: 400, body: { error: { param: 'credentials.webhook_secret' } } });
  t.match(await put(webhook_secret), { status: 200, body: { status: 'connected', warnings: [] } });
  const mine = () => stripe.endpoints.filter(({ url }) => url === webhook_url);
  await eventually(() => mine().length === 1, 'the endpoint of before to be deleted');
  t.same(mine(), [by_hand], 'none was created, and theirs is kept');
  const click = (await shop.click(shop.partner_of)).id;
  // It sends events in the version of the account, in which an invoice is another one.
  const invoice = objects.invoice(fresh('in'), fresh('cus'), {
    metadata: { rail_click: click },
    total_taxes: [{ amount: 1_900 }],
  });
  const event = stripe.emit('invoice.paid', invoice, { api_version: '2020-08-27' });
  const { total_taxes: _, ...old } = invoice;
  event.data.object = { ...old, tax: 1_900 };
  const url = `${rail.address}/processors/stripe/${shop.program_id}`;
  t.equal((await deliver(url, stripe.webhook(event, { secret: webhook_secret }))).status, 200);
  await shop.settled();
  t.match(await shop.list('sales'), [{ external_charge_id: invoice.id, tax_minor: 1_900 }]);
});

t.test('the product of an invoice is that of its largest line, also where the event does not show it', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  await shop.rule({ rate_value: 5_000, priority: 1, product_ids: ['prod_large'] });
  const customer = await referred(shop);
  const small = Array.from({ length: 10 }, (_, nth) => objects.line(100, `prod_${nth}`));
  const invoice = objects.invoice(fresh('in'), customer, { lines: { object: 'list', data: small, has_more: true } });
  const event = stripe.emit('invoice.paid', invoice);
  stripe.put({ ...invoice, all_lines: [...small, objects.line(8_900, 'prod_large')] });
  await shop.tell(event);
  const [sale] = (await shop.list('sales')) as [Json];
  t.match(sale, { product_id: 'prod_large', metadata: { products: /prod_large,prod_0/ } });
  t.match(await shop.commissionsOf(sale), [{ amount_minor: 4_950 }]);
});

t.test('a backfill takes in what was pending when a webhook told it', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const { sale, payment } = await paid(shop, await referred(shop));
  const refund = objects.refund(fresh('re'), payment, { status: 'pending', amount: 4_000 });
  const event = stripe.emit('refund.updated', refund);
  await shop.tell(event);
  t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'refund_pending' });
  stripe.put({ ...refund, status: 'succeeded' });
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const readAll = async () => {
    await shop.merchant.post(`${path}/backfill`, { since: new Date((at - 1) * 1000).toISOString() });
    const done = async () => (await shop.merchant.get(path)).backfill.status === 'done';
    await eventually(done, 'the backfill');
    await shop.settled();
    return (await shop.merchant.get(path)).backfill;
  };
  await readAll();
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { refunded_minor: 4_000 });
  t.match(await readAll(), { found: 0 }, 'once');
});

t.test('what another account signs is refused once the program is connected to this one', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const { secret } = stripe.endpoints.at(-1) as Json;
  const url = `${rail.address}/processors/stripe/${shop.program_id}`;
  const signed = () => stripe.webhook(stripe.emit('customer.created', objects.customer(fresh('cus'))), { secret });
  const again = async () => shop.merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
  await again();
  t.equal((await deliver(url, signed())).status, 200, 'the account is the same');
  stripe.account = 'acct_other';
  await again();
  await eventually(async () => (await deliver(url, signed())).status === 401, 'its secret to be refused');
  stripe.account = 'acct_shop';
});
