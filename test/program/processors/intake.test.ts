import { randomBytes } from 'node:crypto';
import t from 'tap';
import { type Json, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { deliver, type Webhook } from '../payouts/rails/provider_server.ts';
import { StripeAccount } from './stripe_account.ts';

const stripe = await startServer(t, new StripeAccount());
const rail = await startRail({ worker: false, provider_urls: { stripe: stripe.url } });

async function connected(): Promise<Shop> {
  const shop = await openShop(rail);
  const body = { mode: 'test', credentials: stripe.credentials };
  const { status, text } = await shop.merchant.request(
    'PUT',
    `/v1/programs/${shop.program_id}/processors/stripe`,
    body,
  );
  if (status !== 200) throw new Error(text);
  return shop;
}
const send = ({ program_id }: Pick<Shop, 'program_id'>, webhook: Webhook) =>
  deliver(`${rail.address}/processors/stripe/${program_id}`, webhook);
const inbox = (shop: Shop, query = ''): Promise<Json[]> => shop.list('processor_events', query);
const refund = (id: string) => ({
  id,
  object: 'refund',
  charge: 'ch_1',
  payment_intent: 'pi_1',
  amount: 100,
  currency: 'usd',
  status: 'succeeded',
  created: 1_764_000_000,
});

t.test('stores what is signed, once, before it answers', async (t) => {
  const shop = await connected();
  const event = stripe.emit('refund.created', refund('re_1'));
  for (const _ of [1, 2, 3]) {
    const answer = await send(shop, stripe.webhook(event));
    t.equal(answer.status, 200, await answer.clone().text());
    t.strictSame(await answer.json(), { received: true });
  }
  const stored = await inbox(shop);
  t.equal(stored.length, 1);
  t.match(stored[0], {
    ...{
      id: /^pev_/,
      object: 'processor_event',
      processor: 'stripe',
      external_event_id: event.id,
      type: 'refund.created',
    },
    ...{ external_object_id: 're_1', external_customer_id: null, livemode: false, status: 'pending', run_id: /^run_/ },
    ...{ occurred_at: '2025-11-24T16:00:00.000Z', worked_at: null },
  });
  t.strictSame(await shop.merchant.get(`/v1/processor_events/${stored[0]?.id}`), stored[0]);
});

t.test('answers 401 to what is not signed with its secret, and stores nothing', async (t) => {
  const [shop, bare] = [await connected(), await openShop(rail)];
  const event = stripe.emit('refund.created', refund('re_2'));
  const good = stripe.webhook(event);
  const changed = Buffer.from(good.raw_body.toString().replace('100', '900'));
  for (const [place, webhook] of [
    [shop, { ...good, headers: {} }],
    [shop, { ...good, headers: { 'stripe-signature': 'nonsense' } }],
    [shop, { ...good, raw_body: changed }],
    [shop, { ...good, raw_body: Buffer.alloc(0) }],
    [shop, stripe.webhook(event, { secret: 'whsec_of_somebody_else' })],
    [shop, stripe.webhook(event, { timestamp: Math.floor(Date.now() / 1000) - 400 })],
    [shop, stripe.webhook({ no: 'event' })],
    [bare, good],
    [{ program_id: 'prg_01kap3b6n8f2v9w4x7y0z1a2b3' }, good],
  ] as const) {
    const answer = await send(place, webhook);
    t.equal(answer.status, 401);
    const message = /not signed with the secret .* five minutes .* not an event\.$/;
    t.match(await answer.json(), { error: { type: 'authentication_error', code: 'signature_invalid', message } });
  }
  t.same(await inbox(shop), []);
  t.equal((await send(shop, good)).status, 200);
});

t.test('answers 401 to what no processor sends: ids and times that cannot be stored', async (t) => {
  const shop = await connected();
  const event = stripe.emit('refund.created', refund('re_8'));
  const about = (fields: Json) => ({ ...event, data: { object: { ...refund('re_8'), ...fields } } });
  for (const odd of [
    ...['evt_\0', 'evt_\ud800', `evt_${randomBytes(3_000).toString('hex')}`].map((id) => ({ ...event, id })),
    ...['re_\0', 're_\ud800', `re_${randomBytes(3_000).toString('hex')}`].map((id) => about({ id })),
    ...['cus_\0', `cus_${randomBytes(3_000).toString('hex')}`].map((customer) => about({ customer })),
    about({ payment_intent: 'pi_\0' }),
    ...[5e12, 2.6e11, -1e11, -6.3e10].map((created) => ({ ...event, created })),
  ])
    t.equal((await send(shop, stripe.webhook(odd))).status, 401, JSON.stringify(odd).slice(0, 80));
  t.same(await inbox(shop), []);
});

t.test('answers 413 to more than a mebibyte, and 404 to a processor that is none', async (t) => {
  const shop = await connected();
  const large = stripe.webhook(
    stripe.emit('refund.created', { ...refund('re_3'), description: 'x'.repeat(1024 * 1024) }),
  );
  const answer = await send(shop, large);
  t.equal(answer.status, 413);
  t.match(await answer.json(), { error: { code: 'payload_too_large' } });
  const unknown = await deliver(`${rail.address}/processors/nobody/${shop.program_id}`, stripe.webhook({}));
  t.equal(unknown.status, 404);
  t.same(await inbox(shop), []);
});

t.test('takes and does not store what has no effect here', async (t) => {
  const shop = await connected();
  for (const event of [
    ...['payment_intent.created', 'constructor', '__proto__', 'toString'].map((type) =>
      stripe.emit(type, { id: 'pi_1', object: 'payment_intent', created: 1_764_000_000 }),
    ),
    stripe.emit('refund.created', refund('re_4'), { livemode: true }),
  ])
    t.equal((await send(shop, stripe.webhook(event))).status, 200);
  t.same(await inbox(shop), []);
});

t.test('takes what is signed with the secret of before until a day after the credentials were set again', async (t) => {
  const shop = await connected();
  const { secret } = stripe.endpoints.at(-1) as Json;
  const body = { mode: 'test', credentials: stripe.credentials };
  await shop.merchant.request('PUT', `/v1/programs/${shop.program_id}/processors/stripe`, body);
  const old = (id: string) => send(shop, stripe.webhook(stripe.emit('refund.created', refund(id)), { secret }));
  t.equal((await old('re_5')).status, 200);
  await shop.merchant.delete(`/v1/programs/${shop.program_id}/processors/stripe`);
  t.equal((await old('re_6')).status, 401);
  t.equal((await inbox(shop)).length, 1);
});

t.test('lists by status, type, object, customer and time', async (t) => {
  const shop = await connected();
  const customer = { id: 'cus_1', object: 'customer', created: 1_764_000_100, email: 'a@example.com' };
  for (const event of [stripe.emit('refund.created', refund('re_7')), stripe.emit('customer.created', customer)])
    await send(shop, stripe.webhook(event));
  const [newest, oldest] = (await inbox(shop)) as [Json, Json];
  for (const [query, found] of [
    ['status=pending', 2],
    ['status=done', 0],
    ['type=refund.created', 1],
    ['processor=stripe', 2],
    ['external_object_id=re_7', 1],
    ['external_customer_id=cus_1', 1],
    [`external_event_id=${oldest.external_event_id}`, 1],
    [`created_after=${encodeURIComponent(newest.created_at)}&type=customer.created`, 1],
    [`created_before=${encodeURIComponent(oldest.created_at)}`, 0],
  ] as const)
    t.equal((await inbox(shop, query)).length, found, query);
});
