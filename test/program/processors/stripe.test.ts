import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop, type StripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });
const { at } = objects;

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;
const clickOf = async (shop: StripeShop): Promise<string> => (await shop.click(shop.partner_of)).id;

/** A customer at Stripe whom the shop's partner brought. */
async function referred(shop: StripeShop): Promise<string> {
  const id = fresh('cus');
  const session = objects.checkout(fresh('cs'), { customer: id, client_reference_id: await clickOf(shop) });
  await shop.tell(stripe.emit('checkout.session.completed', session));
  return id;
}

/** An invoice that the customer has paid, with the id of its payment. */
async function paid(
  shop: StripeShop,
  customer: string,
  fields: Json = {},
): Promise<{ sale: Json; payment: string; id: string }> {
  const [id, payment] = [fresh('in'), fresh('pi')];
  await shop.tell(
    stripe.emit('invoice.paid', objects.invoice(id, customer, fields)),
    stripe.emit('invoice_payment.paid', objects.invoicePayment(id, payment)),
  );
  const [sale] = await shop.list('sales', `external_charge_id=${id}`);
  return { sale: sale as Json, payment, id };
}

const saleOf = async (shop: StripeShop, { id }: Json): Promise<Json> => shop.merchant.get(`/v1/sales/${id}`);

t.test('a checkout binds the customer to the partner of the click, and an invoice becomes a sale', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [customer, session, subscription] = [fresh('cus'), fresh('cs'), fresh('sub')];
  const click = await clickOf(shop);
  const bound = { customer, client_reference_id: click, subscription };
  const first = objects.invoice(fresh('in'), customer, {
    ...{ billing_reason: 'subscription_create', created: at + 10, total: 12_000, amount_paid: 12_000 },
    ...{ total_taxes: [{ amount: 1_500 }, { amount: 500 }], ...objects.ofSubscription(subscription) },
  });
  const second = objects.invoice(fresh('in'), customer, { created: at + 20 });
  const events = [
    stripe.emit('checkout.session.completed', objects.checkout(session, bound)),
    stripe.emit('invoice.paid', first),
    stripe.emit('invoice.paid', second),
  ];
  await shop.tell(...events);
  const [later, earlier] = (await shop.list('sales')) as [Json, Json];
  t.match(earlier, {
    ...{ external_charge_id: first.id, amount_minor: 12_000, tax_minor: 2_000, currency: 'USD', is_first_sale: true },
    ...{ partner_id: shop.partner_of.id, product_id: 'prod_basic', external_subscription_id: subscription },
    ...{
      occurred_at: '2025-11-24T16:00:10.000Z',
      metadata: { processor: 'stripe', billing_reason: 'subscription_create' },
    },
  });
  t.match(later, { external_charge_id: second.id, amount_minor: 9_900, is_first_sale: false });
  const [known] = (await shop.list('customers')) as [Json];
  t.match(known, {
    ...{ external_customer_id: customer, email: 'grace@customer.example.com', name: 'Grace Hopper', status: 'active' },
    ...{ partner_id: shop.partner_of.id, processor: 'stripe', external_subscription_id: subscription },
  });
  t.equal((await shop.list('customers')).length, 1);
  t.same(
    (await shop.list('commissions')).map(({ amount_minor }) => amount_minor),
    [1_980, 2_400],
  );
  const told = await shop.events();
  const outcome = await shop.outcomeOf(events[1] as Json);
  t.match(outcome, { status: 'done', result_id: earlier.id, reason: null });
  t.ok(told.some(({ type, data }) => type === 'sale.created' && data.sale_id === earlier.id));
  const [written] = await rail.query<Json>(
    sql`select request_id from webhooks.event where program_id = ${shop.program_id} and type = 'sale.created' order by position limit 1`,
  );
  t.equal(written?.request_id, outcome.run_id);
});

t.test('an event that comes twice, in whatever form, has its effect once', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const { sale, id, payment } = await paid(shop, customer);
  const refund = objects.refund(fresh('re'), payment, { amount: 900 });
  await shop.tell(
    stripe.emit('invoice.paid', objects.invoice(id, customer)),
    stripe.emit('refund.created', refund),
    stripe.emit('refund.updated', refund),
    stripe.emit('charge.refunded', objects.charge(`ch_of_${payment}`, { payment_intent: payment, customer })),
  );
  t.equal((await shop.list('sales')).length, 1);
  t.match(await saleOf(shop, sale), { refunded_minor: 900, status: 'partially_refunded' });
  t.equal((await shop.list('refunds')).length, 1);
  t.match((await shop.list('refunds'))[0], { external_refund_id: refund.id, amount_minor: 900, sale_id: sale.id });
});

t.test('what comes before what it names waits for it', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [customer, id, payment] = [fresh('cus'), fresh('in'), fresh('pi')];
  const refund = stripe.emit('refund.created', objects.refund(fresh('re'), payment, { created: at + 30 }));
  const of_invoice = stripe.emit('invoice_payment.paid', objects.invoicePayment(id, payment));
  const invoice = stripe.emit('invoice.paid', objects.invoice(id, customer));
  await shop.tell(refund);
  t.match(await shop.outcomeOf(refund), { status: 'waiting', waiting_for: payment });
  await shop.tell(of_invoice);
  t.match(await shop.outcomeOf(of_invoice), { status: 'waiting', waiting_for: id });
  await shop.tell(invoice);
  t.match(await shop.outcomeOf(invoice), { status: 'ignored', reason: 'unattributed', waiting_for: customer });
  t.match(await shop.outcomeOf(of_invoice), { status: 'ignored', reason: 'unattributed', waiting_for: id });
  t.match(await shop.outcomeOf(refund), { status: 'ignored', reason: 'unattributed', waiting_for: payment });
  t.same(await shop.list('sales'), []);
  const session = objects.checkout(fresh('cs'), { customer, client_reference_id: await clickOf(shop) });
  await shop.tell(stripe.emit('checkout.session.completed', session));
  const [sale] = (await shop.list('sales')) as [Json];
  t.match(sale, { external_charge_id: id, status: 'refunded', refunded_minor: 9_900, partner_id: shop.partner_of.id });
  for (const event of [refund, of_invoice, invoice])
    t.match(await shop.outcomeOf(event), { status: 'done', waiting_for: null });
});

t.test('what was released while a later event was read comes before it', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [customer, id, payment, dispute_id] = [await referred(shop), fresh('in'), fresh('pi'), fresh('dp')];
  // Of another version: what they are about is asked for.
  const old = { api_version: '2025-03-31.basil' };
  const part = objects.refund(fresh('re'), payment, { amount: 3_000, created: at + 20 });
  const lost = objects.dispute(dispute_id, payment, { status: 'lost', created: at + 30 });
  await shop.tell(stripe.emit('invoice.paid', objects.invoice(id, customer)), stripe.emit('refund.created', part, old));
  stripe.delay_ms = 1_000;
  t.teardown(() => {
    stripe.delay_ms = 0;
  });
  await shop.send(stripe.emit('charge.dispute.closed', lost, { ...old, created: at + 90 }));
  await eventually(async () => stripe.calls.some(({ path }) => path.endsWith(dispute_id)), 'the dispute to be read');
  await shop.tell(stripe.emit('invoice_payment.paid', objects.invoicePayment(id, payment)));
  const refunds = await shop.list('refunds');
  t.same(refunds.map((one) => [one.external_refund_id, one.amount_minor]).sort(), [
    [dispute_id, 6_900],
    [part.id, 3_000],
  ]);
});

t.test('a charge of nobody whom a partner brought is no sale', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const asked = () => stripe.calls.filter(({ path }) => path !== '/v1/webhook_endpoints').length;
  const calls = asked();
  const invoice = stripe.emit('invoice.paid', objects.invoice(fresh('in'), fresh('cus')));
  const charge = stripe.emit('charge.succeeded', objects.charge(fresh('ch'), { customer: fresh('cus') }));
  await shop.tell(invoice, charge);
  for (const event of [invoice, charge])
    t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'unattributed' });
  t.same(await shop.list('sales'), []);
  t.equal(asked(), calls, 'nothing was asked about it');
});

t.test(
  'trials, credits and a balance that pays all are no sales, and what is paid beside a credit is one',
  async (t) => {
    const shop = await openStripeShop(rail, stripe);
    const customer = await referred(shop);
    const trial = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer, { amount_paid: 0, total: 0 }));
    const credit = stripe.emit(
      'invoice.paid',
      objects.invoice(fresh('in'), customer, { amount_paid: -500, total: -500 }),
    );
    const partly = objects.invoice(fresh('in'), customer, {
      amount_paid: 5_000,
      total: 10_000,
      total_taxes: [{ amount: 1_597 }],
    });
    await shop.tell(trial, credit, stripe.emit('invoice.paid', partly));
    for (const event of [trial, credit])
      t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'nothing_paid' });
    for (const amount_paid of [undefined, null, '12', 12_345.5, 2 ** 60]) {
      const odd = stripe.emit('invoice.paid', { ...objects.invoice(fresh('in'), customer), amount_paid });
      await shop.tell(odd);
      const message = 'amount_paid is not a whole number of minor units.';
      t.match(await shop.outcomeOf(odd), { status: 'failed', reason: 'unreadable', message });
    }
    const sales = await shop.list('sales');
    t.equal(sales.length, 1);
    t.match(sales[0], { amount_minor: 5_000, tax_minor: 799, net_amount_minor: 4_201 });
  },
);

t.test('a time that cannot be stored fails, a text is mended, and what comes after is worked on', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const before = { created: at - 1 };
  const paidWith = (fields: Json) =>
    stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer, { ...before, ...fields }));
  const late = paidWith({ status_transitions: { paid_at: 5e12 } });
  const lines = (product: string) => ({ data: [objects.line(9_900, product)], has_more: false });
  const click = { customer: fresh('cus'), metadata: { rail_click: 'clk_\0' } };
  const stranger = { ...before, metadata: { rail_customer: 'cus_\0' } };
  const odd = [
    paidWith({ lines: lines('prod_\0'), ...objects.ofSubscription('sub_\0') }),
    paidWith({ lines: lines('prod_\ud800'), discounts: [{ promotion_code: 'promo_\0' }] }),
    paidWith(click),
    stripe.emit('customer.updated', objects.customer(fresh('cus'), stranger)),
  ];
  await shop.tell(late, ...odd);
  t.match(await shop.outcomeOf(late), { status: 'failed', reason: 'unreadable', message: /cannot be stored/ });
  const statuses = await Promise.all(odd.map(async (event) => (await shop.outcomeOf(event)).status));
  t.same(statuses, ['done', 'done', 'ignored', 'ignored']);
  t.same((await shop.list('sales')).map(({ product_id }) => product_id).sort(), ['prod_', 'prod_\ufffd']);
  const { sale, payment } = await paid(shop, customer);
  const released = { amount: 100, balance_transaction: null, charge: 'ch_\ud800' };
  await shop.tell(stripe.emit('refund.created', objects.refund(fresh('re'), payment, released)));
  t.match(await saleOf(shop, sale), { amount_minor: 9_900, refunded_minor: 100 });
});

t.test('amounts are those of each currency', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const cases = [
    ['jpy', 9_900, 'JPY', 9_900],
    ['kwd', 9_990, 'KWD', 9_990],
    ['isk', 990_000, 'ISK', 9_900],
    ['ugx', 500_000, 'UGX', 5_000],
    ['mga', 9_900, 'MGA', 990_000],
    ['huf', 990_000, 'HUF', 990_000],
  ] as const;
  for (const [currency, amount, code, amount_minor] of cases) {
    const fields = { currency, amount_paid: amount, total: amount, total_taxes: [{ amount: amount / 10 }] };
    const { sale } = await paid(shop, customer, fields);
    t.match(sale, { currency: code, amount_minor, tax_minor: amount_minor / 10 }, code);
  }
});

t.test('a coupon is matched by the id of its promotion alone', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [promotion, discount, other] = [fresh('promo'), fresh('di'), fresh('di')];
  await shop.coupon({ partner_id: shop.partner_of.id, external_id: promotion, code: 'ADA20' });
  stripe.put(objects.discount(discount, promotion));
  stripe.put(objects.discount(other, fresh('promo')));
  const [by_coupon, by_text] = [fresh('in'), fresh('in')];
  await shop.tell(
    stripe.emit('invoice.paid', objects.invoice(by_coupon, fresh('cus'), { discounts: [other, discount] })),
    stripe.emit('invoice.paid', objects.invoice(by_text, fresh('cus'), { discounts: [other] })),
  );
  const sales = await shop.list('sales');
  t.equal(sales.length, 1);
  t.match(sales[0], { external_charge_id: by_coupon, partner_id: shop.partner_of.id, coupon_id: /^cpn_/ });
  t.match((await shop.list('customers'))[0], { tracked_by: 'coupon', email: 'grace@customer.example.com' });
});

t.test('a promotion that is switched at Stripe switches its coupon, forward only', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const external_id = fresh('promo');
  const { id } = await shop.coupon({ partner_id: shop.partner_of.id, external_id });
  const active = async () => (await shop.merchant.get(`/v1/coupons/${id}`)).active;
  const told = (is_active: boolean, created: number) =>
    shop.tell(
      stripe.emit('promotion_code.updated', objects.promotionCode(external_id, { active: is_active }), { created }),
    );
  await told(false, at + 10);
  t.equal(await active(), false);
  await told(true, at + 5);
  t.equal(await active(), false, 'an older event changes nothing');
  await told(true, at + 20);
  t.equal(await active(), true);
  await shop.tell(stripe.emit('coupon.deleted', { id: 'co_20_off', object: 'coupon', created: at + 30 }));
  t.equal(await active(), false);
});

t.test('a payment without an invoice is a sale: by a Checkout Session, or by itself', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [payment, alone] = [fresh('pi'), fresh('pi')];
  const session = {
    ...{ mode: 'payment', payment_intent: payment, client_reference_id: await clickOf(shop), amount_total: 5_000 },
    total_details: { amount_discount: 0, amount_shipping: 500, amount_tax: 800 },
  };
  const [of_session, bare] = [fresh('ch'), fresh('ch')];
  await shop.tell(
    stripe.emit('checkout.session.completed', objects.checkout(fresh('cs'), { ...session, payment_status: 'unpaid' })),
    stripe.emit(
      'charge.succeeded',
      objects.charge(of_session, { payment_intent: payment, metadata: { rail_click: session.client_reference_id } }),
    ),
  );
  t.same(await shop.list('sales'), [], 'it is not paid yet, and the charge is that of a session');
  await shop.tell(
    stripe.emit('checkout.session.async_payment_succeeded', objects.checkout(fresh('cs'), session)),
    stripe.emit(
      'charge.succeeded',
      objects.charge(bare, { payment_intent: alone, metadata: { rail_click: await clickOf(shop) } }),
    ),
  );
  const sales = await shop.list('sales');
  t.same(sales.map(({ external_charge_id }) => external_charge_id).sort(), [payment, alone].sort());
  t.match(
    sales.find((sale) => sale.external_charge_id === payment),
    { amount_minor: 5_000, tax_minor: 800, shipping_minor: 500 },
  );
  await shop.tell(stripe.emit('refund.created', objects.refund(fresh('re'), alone, { charge: bare })));
  t.match((await shop.list('sales', `external_charge_id=${alone}`))[0], { status: 'refunded' });
});

t.test('the charge of an invoice is no sale of its own, and one that is authorized only is none yet', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const { payment } = await paid(shop, customer);
  const [of_invoice, later] = [fresh('ch'), fresh('ch')];
  const of_invoice_event = stripe.emit(
    'charge.succeeded',
    objects.charge(of_invoice, { payment_intent: payment, customer }),
  );
  const authorized = objects.charge(later, { customer, captured: false, amount_captured: 0 });
  const held = stripe.emit('charge.succeeded', authorized);
  await shop.tell(of_invoice_event, held);
  const [{ id: sale_id }] = (await shop.list('sales')) as [Json];
  t.match(await shop.outcomeOf(of_invoice_event), { status: 'done', result_id: sale_id });
  t.match(await shop.outcomeOf(held), { status: 'ignored', reason: 'not_captured' });
  t.equal((await shop.list('sales')).length, 1);
  await shop.tell(stripe.emit('charge.captured', { ...authorized, captured: true, amount_captured: 4_000 }));
  t.match((await shop.list('sales'))[0], { external_charge_id: authorized.payment_intent, amount_minor: 4_000 });
});

t.test('what is authorized and not captured is released, and takes nothing back', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const released = (charge: Json, amount: number) =>
    objects.refund(fresh('re'), charge.payment_intent, { charge: charge.id, amount, balance_transaction: null });
  const part = objects.charge(fresh('ch'), { customer, amount_captured: 6_000, amount_refunded: 3_900 });
  const none = objects.charge(fresh('ch'), { customer, captured: false, amount_captured: 0 });
  const events = [
    stripe.emit('charge.succeeded', none),
    stripe.emit('refund.created', released(none, 9_900)),
    stripe.emit('charge.captured', part),
    stripe.emit('refund.created', released(part, 3_900)),
    stripe.emit('charge.refunded', part),
  ];
  await shop.tell(...events);
  t.match(await shop.list('sales'), [{ amount_minor: 6_000, refunded_minor: 0 }]);
  for (const event of [events[1], events[3]] as Json[])
    t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'not_captured' });
  const refund = objects.refund(fresh('re'), part.payment_intent, { charge: part.id, amount: 1_000 });
  const unknown = objects.refund(fresh('re'), part.payment_intent, { charge: fresh('ch'), amount: 1_000 });
  for (const one of [refund, unknown])
    await shop.tell(stripe.emit('refund.created', { ...one, balance_transaction: null }));
  t.match(await shop.list('sales'), [{ refunded_minor: 2_000 }], 'all other refunds take back');
});

t.test('a refund that fails is given back, in whichever order that is told', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  for (const order of [
    ['succeeded', 'failed'],
    ['failed', 'succeeded'],
    ['pending', 'succeeded', 'failed'],
  ]) {
    const { sale, payment } = await paid(shop, customer);
    const id = fresh('re');
    for (const status of order)
      await shop.tell(stripe.emit('refund.updated', objects.refund(id, payment, { status, amount: 1_000 })));
    t.match(await saleOf(shop, sale), { status: 'paid', refunded_minor: 0 }, order.join());
    const [refund] = await shop.list('refunds', `external_refund_id=${id}`);
    t.match(refund, { amount_minor: 1_000, reversed_at: /./, reversal_reason: 'refund_failed' });
    t.same(
      (await shop.commissionsOf(sale)).map(({ amount_minor }) => amount_minor),
      [1_980],
    );
  }
  const { sale, payment } = await paid(shop, customer);
  await shop.tell(stripe.emit('refund.failed', objects.refund(fresh('re'), payment, { status: 'failed' })));
  t.match(await saleOf(shop, sale), { refunded_minor: 0 });
  t.equal((await shop.list('refunds', `sale_id=${sale.id}`)).length, 0);
});

t.test('a dispute holds the commission until it is won, or takes it when it is lost', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const tellOf = (type: string, id: string, payment: string, status: string, created: number) =>
    shop.tell(
      stripe.emit(`charge.dispute.${type}`, objects.dispute(id, payment, { status, amount: 9_900 }), { created }),
    );
  const [won, lost, inquiry] = [await paid(shop, customer), await paid(shop, customer), await paid(shop, customer)];
  const ids = [fresh('dp'), fresh('dp'), fresh('dp')] as [string, string, string];
  await tellOf('created', ids[0], won.payment, 'needs_response', at + 10);
  await tellOf('created', ids[1], lost.payment, 'needs_response', at + 10);
  await tellOf('created', ids[2], inquiry.payment, 'warning_needs_response', at + 10);
  const statusOf = async ({ sale }: { sale: Json }) => (await shop.commissionsOf(sale)).map(({ status }) => status);
  t.same(await statusOf(won), ['on_hold']);
  t.same(await statusOf(lost), ['on_hold']);
  t.same(await statusOf(inquiry), ['due']);
  t.equal((await shop.list('risk_flags', 'kind=dispute')).length >= 1, true);
  await tellOf('closed', ids[0], won.payment, 'won', at + 20);
  await tellOf('closed', ids[1], lost.payment, 'lost', at + 20);
  await tellOf('closed', ids[2], inquiry.payment, 'warning_closed', at + 20);
  t.same(await statusOf(won), ['due']);
  t.same(await statusOf(lost), []);
  t.match(await saleOf(shop, lost.sale), { status: 'refunded' });
  t.match((await shop.list('refunds'))[0], { external_refund_id: ids[1], reason: 'dispute_lost' });
  t.same((await shop.list('disputes')).map(({ status }) => status).sort(), ['lost', 'won']);
  await tellOf('created', ids[1], lost.payment, 'needs_response', at + 10);
  t.same(await shop.list('disputes', 'status=open'), []);
  await tellOf('funds_reinstated', ids[1], lost.payment, 'won', at + 30);
  t.match(await saleOf(shop, lost.sale), { status: 'paid', refunded_minor: 0 });
  t.same(await statusOf(lost), ['due']);
});

t.test('a subscription sets the status of its customer, forward only', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const [id, second] = [fresh('sub'), fresh('sub')];
  const tellOf = (type: string, status: string, created: number, sub = id) =>
    shop.tell(
      stripe.emit(`customer.subscription.${type}`, objects.subscription(sub, customer, { status }), { created }),
    );
  const status = async () => (await shop.list('customers'))[0]?.status;
  await tellOf('created', 'trialing', at);
  t.equal(await status(), 'trial');
  await tellOf('updated', 'active', at + 10);
  t.equal(await status(), 'active');
  t.equal((await shop.list('customers'))[0]?.external_subscription_id, id);
  await tellOf('deleted', 'canceled', at + 30);
  t.equal(await status(), 'cancelled');
  await tellOf('updated', 'active', at + 20);
  t.equal(await status(), 'cancelled', 'an older event changes nothing');
  await tellOf('created', 'active', at + 40, second);
  t.equal(await status(), 'active', 'by another subscription');
});

t.test('a customer who signed up here is known at Stripe by the click, or by their id', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const click = await clickOf(shop);
  const by_click = await shop.customer({ click_id: click, email: 'grace@customer.example.com' });
  const by_id = await shop.customer({ partner_id: shop.partner_of.id, email: 'hedy@customer.example.com' });
  const [one, two] = [fresh('cus'), fresh('cus')];
  await shop.tell(
    stripe.emit(
      'checkout.session.completed',
      objects.checkout(fresh('cs'), { customer: one, client_reference_id: click }),
    ),
    stripe.emit('customer.updated', objects.customer(two, { metadata: { rail_customer: by_id.id } })),
  );
  t.match(await shop.merchant.get(`/v1/customers/${by_click.id}`), { external_customer_id: one, name: 'Grace Hopper' });
  t.match(await shop.merchant.get(`/v1/customers/${by_id.id}`), { external_customer_id: two, email: by_id.email });
  t.equal((await shop.list('customers')).length, 2);
});

t.test('a name or an address that cannot be stored fails no event', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const odd = { name: `${'N'.repeat(250)}\u0000`, email: 'nobody' };
  const [known, by_id, by_click] = [fresh('cus'), fresh('cus'), fresh('cus')];
  await shop.customer({ email: undefined, partner_id: shop.partner_of.id, external_customer_id: known });
  const signed_up = await shop.customer({ email: undefined, partner_id: shop.partner_of.id });
  const events = [
    stripe.emit('customer.updated', objects.customer(known, odd)),
    stripe.emit('customer.updated', objects.customer(by_id, { ...odd, metadata: { rail_customer: signed_up.id } })),
    stripe.emit(
      'customer.updated',
      objects.customer(by_click, { ...odd, metadata: { rail_click: await clickOf(shop) } }),
    ),
  ];
  await shop.tell(...events);
  for (const event of events) t.match(await shop.outcomeOf(event), { status: 'done', reason: null });
  for (const customer of await shop.list('customers')) t.match(customer, { name: 'N'.repeat(200), email: null });
  t.equal((await shop.list('customers')).length, 3);
});

t.test('a partner who buys by their own link gets nothing, and the sale is recorded', async (t) => {
  const shop = await openStripeShop(rail, stripe, { block_self_referrals: true });
  const { email } = shop.partner_of;
  const customer = fresh('cus');
  const own = objects.checkout(fresh('cs'), {
    customer,
    client_reference_id: await clickOf(shop),
    customer_details: { email, name: 'Ada' },
  });
  const event = stripe.emit('checkout.session.completed', own);
  await shop.tell(event);
  t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'self_referral' });
  t.same(await shop.list('customers'), []);
  t.match((await shop.list('risk_flags'))[0], { kind: 'self_referral' });
});

t.test('a failed event says why, and is retried when that is corrected', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const odd = objects.invoice(fresh('in'), customer, { currency: 'xxz' });
  const event = stripe.emit('invoice.paid', odd);
  await shop.tell(event);
  const failed = await shop.outcomeOf(event);
  t.match(failed, { status: 'failed', reason: 'invalid_parameter', message: /currency/ });
  t.match(await shop.merchant.post(`/v1/processor_events/${failed.id}/retry`), { status: 'pending' });
  await shop.settled();
  t.match(await shop.outcomeOf(event), { status: 'failed' });
  const { id } = await paid(shop, customer);
  const [done] = await shop.inbox(`external_object_id=${id}&type=invoice.paid`);
  const refused = await shop.merchant.request('POST', `/v1/processor_events/${done?.id}/retry`);
  t.equal(refused.status, 409);
});

t.test('waits while Stripe is away, and goes on with another key when it refuses this one', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const payment = fresh('pi');
  const event = stripe.emit('charge.succeeded', objects.charge(fresh('ch'), { customer, payment_intent: payment }));
  const before = stripe.credentials.secret_key;
  stripe.credentials.secret_key = 'rk_test_rolled_9876543210';
  await shop.send(event);
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  for (;;) if ((await shop.merchant.get(path)).status === 'disconnected') break;
  t.match(await shop.outcomeOf(event), { status: 'pending' });
  await shop.merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
  await shop.settled();
  t.match((await shop.list('sales'))[0], { external_charge_id: payment });
  stripe.credentials.secret_key = before;
});

t.test('what Stripe sent about a customer is exported and erased with them', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  await paid(shop, customer);
  const [known] = (await shop.list('customers')) as [Json];
  const exported = await shop.merchant.get(`/v1/customers/${known.id}/export`);
  t.same(
    exported.processor_events.map(({ type }: Json) => type),
    ['checkout.session.completed', 'invoice.paid', 'invoice_payment.paid'],
  );
  t.match(exported.processor_events[1].body, /grace@customer\.example\.com/);
  await shop.merchant.delete(`/v1/customers/${known.id}`);
  const left = await rail.query<Json>(
    sql`select t::text as row from program.processor_event t where t.program_id = ${shop.program_id}`,
  );
  t.equal(left.length, 3);
  for (const { row } of left) for (const trace of ['grace@', 'Grace', customer]) t.notMatch(row, trace);
});

t.test('so is what Stripe sent about a payment of nobody at Stripe', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [payment, evidence] = [fresh('pi'), { customer_name: 'Grace Hopper', customer_purchase_ip: '203.0.113.9' }];
  const disputed = objects.dispute(fresh('dp'), payment, { evidence });
  const session = { mode: 'payment', payment_intent: payment, client_reference_id: await clickOf(shop) };
  const waiting = objects.refund(fresh('re'), payment, { amount: 9_900, created: at + 2 });
  await shop.tell(
    stripe.emit('checkout.session.completed', objects.checkout(fresh('cs'), session)),
    stripe.emit('charge.succeeded', objects.charge(fresh('ch'), { payment_intent: payment })),
    stripe.emit('refund.created', objects.refund(fresh('re'), payment, { amount: 900 })),
    stripe.emit('charge.dispute.created', disputed),
    stripe.emit('charge.dispute.closed', { ...disputed, status: 'won' }, { created: at + 1 }),
    stripe.emit('refund.created', waiting),
  );
  const [sale] = (await shop.list('sales')) as [Json];
  const exported = await shop.merchant.get(`/v1/customers/${sale.customer_id}/export`);
  t.equal(exported.processor_events.length, 6);
  await shop.merchant.delete(`/v1/customers/${sale.customer_id}`);
  const left = await rail.query<Json>(sql`
    select t.external_object_id, t.body, t::text as row from program.processor_event t where t.program_id = ${shop.program_id}`);
  for (const { row } of left) for (const trace of ['grace@', 'Grace', '203.0.113.9']) t.notMatch(row, trace);
  t.same(
    left.flatMap(({ external_object_id, body }) => (body === null ? [] : [external_object_id])),
    [waiting.id],
  );
});
