import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import t from 'tap';
import { eventually, startRail, startReceiver } from './harness.ts';
import { startServer } from './program/payouts/rails/attempt.ts';
import { StripeAccount } from './program/processors/stripe_account.ts';
import { charge } from './program/processors/stripe_objects.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url } });

t.test('a sale in, a commission and signed webhooks out, in strict sequence', async (t) => {
  const merchant = await rail.organization();
  const receiver = await startReceiver();

  const program = await merchant.post('/v1/programs', {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    currency: 'USD',
  });
  const rule = await merchant.post('/v1/rules', {
    program_id: program.id,
    name: 'Standard',
    rate_type: 'percent',
    rate_value: 2000,
  });
  const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'ada@partner.example.com' });
  const link = await merchant.post('/v1/links', {
    program_id: program.id,
    partner_id: partner.id,
    destination_url: 'https://acme.example.com/pricing',
  });
  t.equal(link.url, 'https://acme.example.com/pricing?ref=ada');

  const endpoint = await merchant.post('/v1/webhook_endpoints', {
    program_id: program.id,
    url: receiver.url,
    event_types: [
      'referral.created',
      'referral.lead',
      'sale.created',
      'commission.created',
      'referral.converted',
      'commission.updated',
    ],
  });
  t.match(endpoint.secret, /^whsec_/);

  const click = await merchant.post('/v1/clicks', {
    program_id: program.id,
    value: 'ada',
    landing_url: link.url,
    visitor_token: 'visitor-0001',
  });
  const customer = await merchant.post('/v1/customers', {
    program_id: program.id,
    click_id: click.id,
    email: 'grace@customer.example.com',
  });
  t.equal(customer.partner_id, partner.id);
  const sale = await merchant.post('/v1/sales', {
    program_id: program.id,
    customer_id: customer.id,
    amount_minor: 9_900,
    currency: 'USD',
    external_charge_id: 'ch_0001',
  });
  t.equal(sale.activity_outcome, 'commission_created');
  t.equal(sale.commissions.length, 1);
  const [commission] = sale.commissions;
  t.match(commission, { amount_minor: 1_980, currency: 'USD', status: 'pending', rule_id: rule.id, rate_value: 2000 });

  const received = await receiver.until(5);
  t.same(
    received.map(({ body }) => body.type),
    ['referral.created', 'referral.lead', 'sale.created', 'commission.created', 'referral.converted'],
  );

  t.test('each verifies with libraries that know nothing of us', async (t) => {
    const stripe = new Stripe('sk_test_unused');
    for (const { raw, headers, body } of received) {
      const verified = stripe.webhooks.constructEvent(raw, headers['rail-signature'] as string, endpoint.secret, 300);
      t.equal(verified.id, body.id);
      t.same(new Webhook(endpoint.secret).verify(raw, headers), body);
      t.throws(() => new Webhook(endpoint.secret).verify(raw.replace('partner_id', 'partner_ID'), headers));
      t.equal(headers['rail-event'], body.type);
      t.equal(headers['rail-event-id'], body.id);
      t.equal(headers['rail-request-id'], body.request.id);
      t.equal(headers['rail-attempt'], '1');
      t.match(headers['rail-delivery-id'], /^whd_/);
      t.equal(headers['user-agent'], 'Rail-Webhooks/1.0');
    }
  });

  t.test('the holding period passes, and the commission is due', async (t) => {
    const run_id = await rail.tick('program/mature_commissions', commission.mature_at);
    const [, , , , , updated] = await receiver.until(6);
    t.match(updated?.body, {
      type: 'commission.updated',
      data: { commission_id: commission.id, status: 'due', previous_status: 'pending' },
    });
    t.equal(updated?.body.request.id, run_id);
    t.equal((await merchant.get(`/v1/commissions/${commission.id}`)).status, 'due');
  });

  t.test('an event of Stripe, signed as its library signs for tests, is a sale', async (t) => {
    const path = `/v1/programs/${program.id}/processors/stripe`;
    await merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
    const secret = stripe.endpoints.at(-1)?.secret;
    const paid = charge('ch_0002', { amount_captured: 5_000, metadata: { rail_click: click.id } });
    const payload = JSON.stringify(stripe.emit('charge.succeeded', paid));
    const headers = { 'stripe-signature': Stripe.webhooks.generateTestHeaderString({ payload, secret }) };
    const url = `${rail.address}/processors/stripe/${program.id}`;
    t.equal((await fetch(url, { method: 'POST', headers, body: payload })).status, 200);
    const sales = () => merchant.get(`/v1/sales?program_id=${program.id}&external_charge_id=pi_of_ch_0002`);
    await eventually(async () => (await sales()).total_count === 1, 'the sale');
    t.match((await sales()).data, [{ amount_minor: 5_000, partner_id: partner.id, customer_id: customer.id }]);
  });
});
