import t from 'tap';
import { eventually, type Json, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { StripeAccount } from './stripe_account.ts';
import { charge, customer as customerAtStripe, discount, invoice, invoicePayment } from './stripe_objects.ts';
import { openStripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });

t.test(
  'a charge that nobody was credited with is found by a claim, and becomes a sale when that is accepted',
  async (t) => {
    const shop = await openStripeShop(rail, stripe);
    await shop.tell(stripe.emit('invoice.paid', invoice('in_claimed', 'cus_claimed')));
    const claim = await shop.merchant.post('/v1/sale_claims', {
      ...{ program_id: shop.program_id, partner_id: shop.partner_of.id, external_charge_id: 'in_claimed' },
    });
    const [event] = await shop.inbox('external_object_id=in_claimed');
    t.match(claim, { finding: 'received', status: 'open', sale_id: null, processor_event_id: event?.id });
    await shop.merchant.post(`/v1/sale_claims/${claim.id}/resolve`, { resolution: 'accepted' });
    await eventually(async () => (await shop.list('sales')).length === 1, 'the sale');
    const [sale] = await shop.list('sales');
    t.match(sale, { external_charge_id: 'in_claimed', partner_id: shop.partner_of.id });
    t.equal((await shop.commissionsOf(sale as object)).length, 1);
  },
);

t.test('a charge of no customer is recorded by hand', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  await shop.tell(stripe.emit('charge.succeeded', charge('ch_guest', { customer: null })));
  const claim = await shop.merchant.post('/v1/sale_claims', {
    ...{ program_id: shop.program_id, partner_id: shop.partner_of.id, external_charge_id: 'ch_guest' },
  });
  t.equal(claim.finding, 'received');
  const answer = await shop.merchant.request('POST', `/v1/sale_claims/${claim.id}/resolve`, { resolution: 'accepted' });
  t.match(answer, { status: 400, body: { error: { code: 'missing_parameter', param: 'sale_id' } } });
});

t.test('a charge that two partners claim is given to one of them', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const other = await shop.partner();
  await shop.tell(
    stripe.emit('invoice.paid', invoice('in_twice', 'cus_twice')),
    stripe.emit('invoice_payment.paid', invoicePayment('in_twice', 'pi_twice')),
  );
  const claimOf = (partner: Json, external_charge_id: string) =>
    shop.merchant.post('/v1/sale_claims', {
      ...{ program_id: shop.program_id, partner_id: partner.id, external_charge_id },
    });
  const resolve = ({ id }: Json, fields: Json = {}) =>
    shop.merchant.request('POST', `/v1/sale_claims/${id}/resolve`, { resolution: 'accepted', ...fields });
  const [mine, theirs] = [await claimOf(shop.partner_of, 'in_twice'), await claimOf(other, 'in_twice')];
  t.equal((await resolve(mine)).status, 200);
  await eventually(async () => (await shop.list('sales')).length === 1, 'the sale');
  const [sale] = (await shop.list('sales')) as [Json];
  t.match(await resolve(theirs), { status: 409 });
  t.match(await resolve(theirs, { sale_id: sale.id }), {
    status: 409,
    body: { error: { message: /of another partner/ } },
  });
  t.match(await shop.merchant.get(`/v1/sales/${sale.id}`), { partner_id: shop.partner_of.id });
});

t.test('a claim finds a sale by whichever id of the payment the processor has', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [customer, other] = [await shop.referred(shop.partner_of), await shop.partner()];
  const payment = { payment_intent: 'pi_aliased', customer: 'cus_aliased', metadata: { rail_customer: customer.id } };
  await shop.tell(stripe.emit('customer.updated', { ...payment, id: 'cus_aliased', object: 'customer' }));
  await shop.tell(stripe.emit('charge.succeeded', charge('ch_aliased', payment)));
  const [sale] = (await shop.list('sales')) as [Json];
  for (const external_charge_id of ['pi_aliased', 'ch_aliased'])
    for (const [partner, finding] of [
      [shop.partner_of, 'credited'],
      [other, 'found_without_click'],
    ] as const) {
      const body = { program_id: shop.program_id, partner_id: partner.id, external_charge_id };
      const claim = await shop.merchant.post('/v1/sale_claims', body);
      t.match(claim, { finding, sale_id: sale.id }, external_charge_id);
    }
});

t.test('a sale explains why a coupon that was off credits nobody, and a claim finds it by that', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const other = await shop.partner();
  const coupon = await shop.coupon({ external_id: 'promo_off', partner_id: other.id });
  await shop.merchant.post(`/v1/coupons/${coupon.id}/deactivate`);
  await shop.customer({ partner_id: shop.partner_of.id, external_customer_id: 'cus_coupon' });
  stripe.put(discount('di_off', 'promo_off'));
  const created = Math.floor(Date.now() / 1000) + 60;
  await shop.tell(stripe.emit('invoice.paid', invoice('in_coupon', 'cus_coupon', { created, discounts: ['di_off'] })));
  const [sale] = (await shop.list('sales')) as [Json];
  t.match((await shop.merchant.get(`/v1/sales/${sale.id}/explanation`)).candidates, [
    { by: 'coupon', credited: false, reason: 'coupon_without_partner', external_coupon_id: 'promo_off' },
    { by: 'customer', credited: true, partner_id: shop.partner_of.id },
  ]);
  const claim = await shop.merchant.post('/v1/sale_claims', {
    ...{ program_id: shop.program_id, partner_id: other.id, coupon_code: coupon.code, occurred_at: sale.occurred_at },
  });
  t.match(claim, { finding: 'found_without_click', sale_id: sale.id });
});

t.test('a claim finds a charge of nobody by the email address that it holds, near its time', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const [alan, time] = [{ customer_email: 'Alan@customer.example.com' }, '2025-11-24T20:00:00Z'];
  await shop.tell(
    stripe.emit('customer.created', customerAtStripe('cus_alan', { email: alan.customer_email })),
    stripe.emit('invoice.paid', invoice('in_alan', 'cus_alan', alan)),
  );
  const [event] = await shop.inbox('external_object_id=in_alan');
  const claimOf = (fields: Json) =>
    shop.merchant.post('/v1/sale_claims', { program_id: shop.program_id, partner_id: shop.partner_of.id, ...fields });
  const others = [
    { email: 'alan@customer.example.com', occurred_at: '2025-11-27T20:00:00Z' },
    { email: 'lan@customer.example.com', occurred_at: time },
    { external_charge_id: 'cus_alan' },
  ];
  for (const other of others) t.match(await claimOf(other), { finding: 'not_found', processor_event_id: null });
  const claim = await claimOf({ email: 'alan@customer.example.com', occurred_at: time });
  t.match(claim, { finding: 'received', sale_id: null, processor_event_id: event?.id });
  await shop.merchant.post(`/v1/sale_claims/${claim.id}/resolve`, { resolution: 'accepted' });
  await eventually(async () => (await shop.list('sales', 'external_charge_id=in_alan')).length === 1, 'the sale');
});

t.test('a claim that is accepted after the processor told the charge credits it', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  const other = await shop.partner();
  const claimOf = (external_charge_id: string) =>
    shop.merchant.post('/v1/sale_claims', {
      ...{ program_id: shop.program_id, partner_id: shop.partner_of.id, external_charge_id },
    });
  const accept = ({ id }: Json) => shop.merchant.post(`/v1/sale_claims/${id}/resolve`, { resolution: 'accepted' });
  const [nobodys, of_other] = [await claimOf('in_told'), await claimOf('in_theirs')];
  await shop.customer({ partner_id: other.id, external_customer_id: 'cus_theirs' });
  await shop.tell(
    stripe.emit('invoice.paid', invoice('in_told', 'cus_told')),
    stripe.emit('invoice.paid', invoice('in_theirs', 'cus_theirs')),
  );
  t.match(await accept(nobodys), { finding: 'not_found', status: 'accepted' });
  await eventually(async () => (await shop.list('sales')).length === 2, 'the sale');
  const [theirs] = (await shop.list('sales', 'external_charge_id=in_theirs')) as [Json];
  t.match(await accept(of_other), { finding: 'not_found', status: 'accepted', sale_id: theirs.id });
  for (const sale of await shop.list('sales')) t.equal(sale.partner_id, shop.partner_of.id);
});
