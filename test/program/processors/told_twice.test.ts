/** The same refund, dispute or payment told by the processor and by a request, in whichever order: it counts once. */
import t, { type Test } from 'tap';
import { eventually, type Json, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });
const shop = await openStripeShop(rail, stripe);
/** Refunds of now: a request that sends no time tells of now. */
const at = Math.floor(Date.now() / 1_000) - 3_600;

let made = 0;
const fresh = (prefix: string): string => `${prefix}_${String(++made).padStart(4, '0')}`;

/** An invoice of 99.00 that a customer of the partner has paid. */
async function paid() {
  const [customer, invoice, payment] = [fresh('cus'), fresh('in'), fresh('pi')];
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  await shop.tell(
    stripe.emit('invoice.paid', objects.invoice(invoice, customer, { created: at })),
    stripe.emit('invoice_payment.paid', objects.invoicePayment(invoice, payment)),
  );
  const [sale] = (await shop.list('sales', `external_charge_id=${invoice}`)) as [Json];
  return { customer, invoice, payment, sale };
}

function* ordersOf<Item>(items: Item[]): Generator<Item[]> {
  if (items.length === 0) yield [];
  for (const [nth, first] of items.entries())
    for (const rest of ordersOf(items.toSpliced(nth, 1))) yield [first, ...rest];
}

const request = async (path: string, body: Json, ...expected: number[]): Promise<Json> => {
  const answer = await shop.merchant.request('POST', path, body);
  if (!expected.includes(answer.status)) throw new Error(`${answer.status} ${answer.text}`);
  return answer.body;
};

const refundEvent = (payment: string, id: string, fields: Json = {}) =>
  stripe.emit(
    fields.status === 'failed' ? 'refund.failed' : 'refund.created',
    objects.refund(id, payment, { amount: 3_000, created: at + 60, ...fields }),
    { created: at + (fields.status === 'failed' ? 120 : 60) },
  );

/** The sale, and that its commissions are 20 % of what is left of it. */
async function leaves(t: Test, sale: Json, refunded_minor: number, said: string): Promise<void> {
  await shop.settled();
  // What a request releases is worked on by a job.
  const now = async () => (await shop.merchant.get(`/v1/sales/${sale.id}`)).refunded_minor === refunded_minor;
  await eventually(now, `${refunded_minor} to be refunded: ${said}`);
  const earned = (await shop.commissionsOf(sale)).reduce((sum, { amount_minor }) => sum + amount_minor, 0);
  t.equal(earned, (9_900 - refunded_minor) / 5, `what is earned: ${said}`);
}

t.test('refunds that requests send without an id count once beside the events of the processor', async (t) => {
  for (const order of ['aa11', 'a1a2', 'a12a', '1aa2', '1a2a', '12aa']) {
    const { sale, payment } = await paid();
    const events: Json = { 1: fresh('re'), 2: fresh('re') };
    let told = 0;
    for (const step of order)
      if (step === 'a') await request(`/v1/sales/${sale.id}/refund`, { amount_minor: 3_000 }, 200, 409);
      else await shop.tell(refundEvent(payment, events[step === '1' && told++ > 0 ? '2' : step]));
    await leaves(t, sale, 6_000, order);
    const ids = (await shop.list('refunds', `sale_id=${sale.id}`)).map(({ external_refund_id }) => external_refund_id);
    t.same(ids.sort(), Object.values(events).sort(), `the processor's ids: ${order}`);
  }
});

t.test(
  'a refund without an id is refused after the event, with what is recorded, and another one is not',
  async (t) => {
    const { sale, payment } = await paid();
    const refund = fresh('re');
    await shop.tell(refundEvent(payment, refund));
    const path = `/v1/sales/${sale.id}/refund`;
    t.match(await request(path, { amount_minor: 3_000 }, 409), {
      error: { code: 'resource_already_exists', param: 'external_refund_id', message: new RegExp(refund) },
      existing: { external_refund_id: refund, amount_minor: 3_000 },
    });
    await request(path, { amount_minor: 1_000 }, 200);
    await request(path, { amount_minor: 3_000, external_refund_id: 'cash-1' }, 200);
    await leaves(t, sale, 7_000, 'three refunds');
    await request(path, {}, 200);
    await leaves(t, sale, 9_900, 'the rest');
  },
);

t.test('a refund that fails at the processor is given back, also where a request recorded it', async (t) => {
  const steps = ['request', 'succeeded', 'failed'];
  for (const order of [...ordersOf(steps), ['request', 'failed'], ['failed', 'request']]) {
    const { sale, payment } = await paid();
    const external_refund_id = fresh('re');
    for (const step of order)
      if (step === 'request')
        await request(`/v1/sales/${sale.id}/refund`, { amount_minor: 3_000, external_refund_id }, 200, 409);
      else await shop.tell(refundEvent(payment, external_refund_id, { status: step }));
    await leaves(t, sale, 0, `${order}`);
  }
  const { sale, payment } = await paid();
  await request(`/v1/sales/${sale.id}/refund`, { amount_minor: 3_000 }, 200);
  await shop.tell(refundEvent(payment, fresh('re'), { status: 'failed' }));
  await leaves(t, sale, 0, 'without an id');
});

t.test('a dispute that a request sends without an id counts once beside those of the processor', async (t) => {
  for (const order of ordersOf(['request', 'created', 'closed'])) {
    const { sale, payment } = await paid();
    const id = fresh('dp');
    const event = (type: string, status: string, created: number) =>
      stripe.emit(`charge.dispute.${type}`, objects.dispute(id, payment, { status, amount: 4_000, created: at + 60 }), {
        created,
      });
    for (const step of order)
      if (step === 'request') await request('/v1/disputes', { sale_id: sale.id, amount_minor: 4_000 }, 201, 409);
      else if (step === 'created') await shop.tell(event('created', 'needs_response', at + 60));
      else await shop.tell(event('closed', 'lost', at + 120));
    await leaves(t, sale, 4_000, `${order}`);
    t.match(await shop.list('disputes', `sale_id=${sale.id}`), [{ external_dispute_id: id, status: 'lost' }]);
  }
});

t.test('a refund that was refused for what was left is taken once there is room', async (t) => {
  for (const way of ['correction', 'reversal']) {
    const { sale, payment } = await paid();
    if (way === 'correction') await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 5_000 });
    else await request(`/v1/sales/${sale.id}/refund`, { amount_minor: 4_900, external_refund_id: fresh('cash') }, 200);
    const event = refundEvent(payment, fresh('re'), { amount: 9_900 });
    await shop.tell(event);
    t.match(await shop.outcomeOf(event), { status: 'failed', reason: 'refund_exceeds_sale' });
    if (way === 'correction') await shop.merchant.patch(`/v1/sales/${sale.id}`, { amount_minor: 9_900 });
    else await request(`/v1/refunds/${(await shop.list('refunds', `sale_id=${sale.id}`))[0]?.id}/reverse`, {}, 200);
    await leaves(t, sale, 9_900, way);
  }
});

t.test(
  'a payment that a request records too is one sale, whichever id it is sent by and whoever comes first',
  async (t) => {
    // From then on the payments of invoices are asked for.
    await shop.sale({ external_charge_id: fresh('pi'), partner_id: shop.partner_of.id });
    const orders = [
      'request invoice payment refund',
      'invoice request payment refund',
      'invoice payment refund request',
    ];
    for (const by of ['in', 'pi'] as const)
      for (const is_known of [true, false])
        for (const order of [...orders, 'refund payment request invoice']) {
          const [customer, ids] = [fresh('cus'), { in: fresh('in'), pi: fresh('pi') }];
          if (is_known) await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
          const paid_by = stripe.put(objects.invoicePayment(ids.in, ids.pi));
          const steps: Record<string, () => Promise<unknown>> = {
            request: () =>
              request(
                '/v1/sales',
                {
                  ...{ program_id: shop.program_id, external_charge_id: ids[by], amount_minor: 9_900, currency: 'USD' },
                  ...(is_known ? { external_customer_id: customer } : { partner_id: shop.partner_of.id }),
                },
                201,
                409,
              ),
            invoice: () => shop.tell(stripe.emit('invoice.paid', objects.invoice(ids.in, customer, { created: at }))),
            payment: () => shop.tell(stripe.emit('invoice_payment.paid', paid_by)),
            refund: () => shop.tell(refundEvent(ids.pi, fresh('re'))),
          };
          for (const step of order.split(' ')) await steps[step]?.();
          const recorded = (
            await Promise.all(Object.values(ids).map((id) => shop.list('sales', `external_charge_id=${id}`)))
          ).flat();
          t.equal(recorded.length, 1, `${by}, ${is_known ? 'known' : 'unknown'}: ${order}`);
          await leaves(t, recorded[0] as Json, 3_000, order);
        }
  },
);

t.test('a sale that is deleted and recorded anew has the refunds that the processor tells', async (t) => {
  for (const is_told_first of [true, false])
    for (const by of ['invoice', 'payment'] as const) {
      const { customer, sale, ...ids } = await paid();
      const refund = () => shop.tell(refundEvent(ids.payment, fresh('re')));
      await shop.merchant.delete(`/v1/sales/${sale.id}`);
      if (is_told_first) await refund();
      const again = await shop.sale({
        ...{ external_charge_id: ids[by], external_customer_id: customer, amount_minor: 9_900 },
        occurred_at: sale.occurred_at,
      });
      if (!is_told_first) await refund();
      await leaves(t, again, 3_000, `${by}, ${is_told_first ? 'before' : 'after'}`);
    }
});

t.test('a sale that is deleted and recorded anew has the refunds and disputes that it had', async (t) => {
  for (const by of ['invoice', 'payment'] as const) {
    const { customer, sale, ...ids } = await paid();
    const [refund, failing, disputed] = [fresh('re'), fresh('re'), fresh('dp')];
    const dispute = objects.dispute(disputed, ids.payment, { amount: 4_000, created: at + 200 });
    await shop.tell(
      refundEvent(ids.payment, refund),
      refundEvent(ids.payment, failing, { amount: 1_000 }),
      refundEvent(ids.payment, failing, { amount: 1_000, status: 'failed' }),
      stripe.emit('charge.dispute.created', dispute),
      stripe.emit('charge.dispute.closed', { ...dispute, status: 'lost' }, { created: at + 300 }),
    );
    await leaves(t, sale, 7_000, `${by}: at first`);
    await shop.merchant.delete(`/v1/sales/${sale.id}`);
    const again = await shop.sale({
      ...{ external_charge_id: ids[by], external_customer_id: customer, amount_minor: 9_900 },
      occurred_at: sale.occurred_at,
    });
    await leaves(t, again, 7_000, `${by}: recorded anew`);
    t.match(await shop.list('disputes', `external_dispute_id=${disputed}`), [{ sale_id: again.id, status: 'lost' }]);
    await shop.tell(
      stripe.emit('refund.updated', objects.refund(refund, ids.payment, { amount: 3_000, created: at + 60 })),
    );
    await leaves(t, again, 7_000, `${by}: told once more`);
    t.match(
      (await shop.list('refunds', `sale_id=${again.id}`))
        .map((one) => [one.external_refund_id, one.reversed_at !== null])
        .sort(),
      [
        [disputed, false],
        [refund, false],
        [failing, true],
      ].sort(),
    );
  }
});

t.test('a request and an event about one payment at the same time make one sale', async (t) => {
  const customer = fresh('cus');
  const { id } = await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: customer });
  const ids = Array.from({ length: 6 }, () => ({ invoice: fresh('in'), payment: fresh('pi') }));
  const sales = ids.map(({ payment }) => ({
    ...{ program_id: shop.program_id, external_customer_id: customer, external_charge_id: payment },
    ...{ amount_minor: 9_900, currency: 'USD' },
  }));
  for (const { invoice, payment } of ids) stripe.put(objects.invoicePayment(invoice, payment));
  const events = ids.map(({ invoice }) => stripe.emit('invoice.paid', objects.invoice(invoice, customer)));
  await Promise.all([
    shop.send(...events),
    ...sales.slice(0, 3).map((sale) => request('/v1/sales', sale, 201, 409)),
    request('/v1/sales/bulk', sales.slice(3) as unknown as Json, 200),
  ]);
  await shop.settled();
  t.equal((await shop.list('sales', `customer_id=${id}`)).length, ids.length);
});

t.test('a payment that is recorded twice before the processor tells its id is shown as that', async (t) => {
  const other = await openStripeShop(rail, stripe);
  const [customer, invoice, payment] = [fresh('cus'), fresh('in'), fresh('pi')];
  await other.customer({ partner_id: other.partner_of.id, external_customer_id: customer });
  await other.tell(stripe.emit('invoice.paid', objects.invoice(invoice, customer)));
  const twice = await other.sale({ external_customer_id: customer, external_charge_id: payment, amount_minor: 9_900 });
  const event = stripe.emit('invoice_payment.paid', objects.invoicePayment(invoice, payment));
  await other.tell(event);
  const told = await other.outcomeOf(event);
  t.match(told, { status: 'failed', reason: 'recorded_twice', message: new RegExp(`${twice.id} are one payment`) });
  await other.merchant.delete(`/v1/sales/${twice.id}`);
  await other.merchant.post(`/v1/processor_events/${told.id}/retry`);
  await other.settled();
  t.match(await other.outcomeOf(event), { status: 'done' });
  const answer = await other.merchant.request('POST', '/v1/sales', {
    ...{ program_id: other.program_id, external_charge_id: payment, amount_minor: 9_900, currency: 'USD' },
  });
  t.match(answer, { status: 409, body: { existing: { external_charge_id: invoice } } });
});

t.test(
  'an invoice of nobody that a request records by any of its ids has the refunds that were told before',
  async (t) => {
    for (const nth of [0, 1, 2]) {
      const [customer, invoice, payment, charge] = [fresh('cus'), fresh('in'), fresh('pi'), fresh('ch')];
      await shop.tell(
        stripe.emit('invoice.paid', objects.invoice(invoice, customer, { created: at })),
        stripe.emit('invoice_payment.paid', objects.invoicePayment(invoice, payment)),
        stripe.emit('charge.succeeded', objects.charge(charge, { payment_intent: payment, customer, created: at })),
        refundEvent(payment, fresh('re')),
      );
      const external_charge_id = [invoice, payment, charge][nth];
      const { id: customer_id } = await shop.customer({ partner_id: shop.partner_of.id });
      const sale = await shop.sale({ customer_id, external_charge_id, amount_minor: 9_900 });
      await leaves(t, sale, 3_000, `${external_charge_id}`);
      await shop.settled();
      const again = { program_id: shop.program_id, customer_id, amount_minor: 9_900, currency: 'USD' };
      for (const other of [invoice, payment, charge])
        await request('/v1/sales', { ...again, external_charge_id: other }, 409);
    }
  },
);
