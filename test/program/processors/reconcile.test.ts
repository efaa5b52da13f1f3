import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop, type StripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });
const now = Math.floor(Date.now() / 1000);
const in_days = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;

async function referred(shop: StripeShop): Promise<string> {
  const customer = fresh('cus');
  const { id } = await shop.click(shop.partner_of);
  const session = objects.checkout(fresh('cs'), { customer, client_reference_id: id, created: now });
  await shop.tell(stripe.emit('checkout.session.completed', session));
  return customer;
}

const idle = () =>
  eventually(
    async () => (await rail.query(sql`select 1 from core.jobs() j where j.state in ('ready', 'running')`)).length === 0,
    'all jobs to be done',
  );
const runs = async (name: string, at = in_days(0)): Promise<void> => {
  await rail.tick(`program/${name}`, at);
  await idle();
};

t.test('takes in the events that never arrived, and nothing the second time', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const ids = Array.from({ length: 130 }, () => fresh('in'));
  for (const id of ids) stripe.emit('invoice.paid', objects.invoice(id, customer, { created: now }));
  stripe.emit('payment_intent.created', { id: fresh('pi'), object: 'payment_intent', created: now });
  // The version of the account before: of its invoices we know no payment.
  const odd = objects.invoice(fresh('in'), customer, { created: now });
  const event = stripe.emit('invoice.paid', odd, { api_version: '2019-05-16' });
  event.data.object = { id: odd.id, object: 'invoice', customer, total: 1 };
  await runs('reconcile_processors');
  await shop.settled();
  t.equal(
    (await rail.query<Json>(sql`select count(*) as n from program.sale where program_id = ${shop.program_id}`))[0]?.n,
    131,
  );
  t.match((await shop.list('sales', `external_charge_id=${odd.id}`))[0], { amount_minor: 9_900 });
  const count = async () => (await rail.query<Json>(sql`select count(*) as n from program.processor_event`))[0]?.n;
  const before = await count();
  await runs('reconcile_processors', new Date(Date.now() + 1000).toISOString());
  t.equal(await count(), before);
});

t.test('disconnects where the key is refused, and goes on from there with another one', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const before = stripe.credentials.secret_key;
  stripe.credentials.secret_key = 'rk_test_rolled_1234567890';
  stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer, { created: now }));
  await runs('reconcile_processors', in_days(0.01));
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  t.match(await shop.merchant.get(path), { status: 'disconnected' });
  await shop.merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
  await runs('reconcile_processors', in_days(0.02));
  await shop.settled();
  t.equal((await shop.list('sales')).length, 1);
  stripe.credentials.secret_key = before;
});

t.test('asks for what was waited for in vain for 72 hours, and says what nobody knows', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const [id, payment, alone, unknown] = [fresh('in'), fresh('pi'), fresh('pi'), fresh('pi')];
  stripe.put(objects.invoice(id, customer));
  stripe.put(objects.invoicePayment(id, payment));
  stripe.put(objects.charge(fresh('ch'), { payment_intent: alone, customer }));
  const refunds = [payment, alone, unknown].map((of) => stripe.emit('refund.created', objects.refund(fresh('re'), of)));
  await shop.tell(...refunds);
  for (const refund of refunds) t.match(await shop.outcomeOf(refund), { status: 'waiting' });
  await runs('sweep_processor_events', in_days(2.9));
  for (const refund of refunds) t.match(await shop.outcomeOf(refund), { status: 'waiting' });
  await runs('sweep_processor_events', in_days(3.1));
  await shop.settled();
  const outcomes = [];
  for (const refund of refunds) outcomes.push(await shop.outcomeOf(refund));
  t.match(outcomes, [
    { status: 'done' },
    { status: 'done' },
    { status: 'unresolved', waiting_for: unknown, message: /the processor does not know either/ },
  ]);
  t.same(
    (await shop.list('sales')).map(({ external_charge_id, status }) => [external_charge_id, status]).sort(),
    [
      [id, 'refunded'],
      [alone, 'refunded'],
    ].sort(),
  );
});

t.test('asks although many events wait for a connection that was deleted', async (t) => {
  const [gone, shop] = [await openStripeShop(rail, stripe), await openStripeShop(rail, stripe)];
  const refund = stripe.emit('refund.created', objects.refund(fresh('re'), fresh('pi')));
  for (const { tell } of [gone, shop]) await tell(refund);
  await gone.merchant.delete(`/v1/programs/${gone.program_id}/processors/stripe`);
  await rail.query(sql`
    insert into program.processor_event
      (organization_id, id, program_id, processor, external_event_id, type, livemode, occurred_at, rank, queue,
        run_id, status, waiting_for, worked_at, created_at, updated_at)
    select e.organization_id, core.new_id('pev'), e.program_id, e.processor, e.external_event_id || g, e.type, false, now(), 12, e.queue,
      core.new_id('run'), 'waiting', e.waiting_for, e.worked_at - interval '1 hour', now(), now()
    from program.processor_event e, generate_series(1, 1000) as g
    where e.program_id = ${gone.program_id}`);
  await runs('sweep_processor_events', in_days(3.1));
  t.match(await shop.outcomeOf(refund), { status: 'unresolved' });
  t.match(await gone.outcomeOf(refund), { status: 'waiting' });
});

t.test('works on an event whose job is gone', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const event = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer));
  await rail.query(sql`
    insert into program.processor_event
      (organization_id, id, program_id, processor, external_event_id, type, external_customer_id, livemode, occurred_at, rank, queue,
        run_id, status, body, created_at, updated_at)
    values (${shop.merchant.organization_id}, core.new_id('pev'), ${shop.program_id}, 'stripe', ${event.id}, 'invoice.paid', ${customer},
      false, now(), 5, ${customer}, core.new_id('run'), 'pending', ${JSON.stringify(event)}, now(), now() - interval '3 minutes')`);
  await runs('sweep_processor_events');
  t.match(await shop.outcomeOf(event), { status: 'done' });
  t.equal((await shop.list('sales')).length, 1);
});

t.test('a customer who is created by the API has the charges that came before', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = fresh('cus');
  const event = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer));
  await shop.tell(event);
  t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'unattributed' });
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  await eventually(async () => (await shop.list('sales')).length === 1, 'the sale');
  t.match(await shop.outcomeOf(event), { status: 'done' });
});

t.test('a sale that tells the id of a known customer releases the charges that came before', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = fresh('cus');
  const event = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer));
  await shop.tell(event);
  t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'unattributed' });
  const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id });
  await shop.sale({ customer_id, external_customer_id: customer });
  await eventually(async () => (await shop.list('sales')).length === 2, 'both sales');
  t.match(await shop.outcomeOf(event), { status: 'done' });
});

t.test('the refund of a charge of nobody waits for nothing', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [customer, payment] = [fresh('cus'), fresh('pi')];
  const refund = stripe.emit('refund.created', objects.refund(fresh('re'), payment, { amount: 900 }));
  const discounted = objects.invoice(fresh('in'), fresh('cus'), { discounts: [fresh('di')] });
  const of_invoice = stripe.emit('invoice_payment.paid', objects.invoicePayment(discounted.id, fresh('pi')));
  await shop.tell(
    refund,
    stripe.emit('charge.succeeded', objects.charge(fresh('ch'), { customer, payment_intent: payment })),
    of_invoice,
    stripe.emit('invoice.paid', discounted),
  );
  for (const event of [refund, of_invoice])
    t.match(await shop.outcomeOf(event), { status: 'ignored', reason: 'unattributed' });
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  await eventually(async () => (await shop.list('sales')).length === 1, 'the sale');
  await shop.settled();
  t.match(await shop.list('sales'), [{ external_charge_id: payment, refunded_minor: 900 }]);
});

t.test('a sale that is sent while no processor is connected is the charge of nobody', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const [customer, payment] = [fresh('cus'), fresh('pi')];
  const invoice = objects.invoice(fresh('in'), customer);
  await shop.tell(
    stripe.emit('invoice.paid', invoice),
    stripe.emit('invoice_payment.paid', objects.invoicePayment(invoice.id, payment)),
  );
  await shop.settled();
  await shop.merchant.delete(path);
  const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id });
  await shop.sale({ customer_id, external_charge_id: invoice.id, amount_minor: 9_900 });
  await idle();
  await shop.merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
  const refund = stripe.emit('refund.created', objects.refund(fresh('re'), payment, { amount: 900, created: now }));
  await runs('reconcile_processors', in_days(0.1));
  await shop.settled();
  t.match(await shop.outcomeOf(refund), { status: 'done' });
  t.match(await shop.list('sales'), [{ external_charge_id: invoice.id, refunded_minor: 900 }]);
});

t.test('deletes events after 90 days', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const customer = await referred(shop);
  const kept = stripe.emit('invoice.paid', objects.invoice(fresh('in'), customer));
  await shop.tell(kept);
  await rail.query(sql`
    update program.processor_event set created_at = now() - interval '91 days'
    where program_id = ${shop.program_id} and type <> 'invoice.paid'`);
  await runs('purge_processor_events');
  t.same(
    (await shop.inbox()).map(({ external_event_id }) => external_event_id),
    [kept.id],
  );
});
