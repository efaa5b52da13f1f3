import t from 'tap';
import { stripe as billing } from '../../../src/program/processors/stripe/stripe.ts';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { PaddleAccount } from './paddle_account.ts';
import { StripeAccount } from './stripe_account.ts';

const stripe = await startServer(t, new StripeAccount());
const paddle = await startServer(t, new PaddleAccount());
const rail = await startRail({ provider_urls: { stripe: stripe.url, paddle: paddle.url } });

const pathOf = ({ program_id }: Shop) => `/v1/programs/${program_id}/processors/stripe`;
const put = (shop: Shop, credentials: Json = stripe.credentials, mode = 'test') =>
  shop.merchant.request('PUT', pathOf(shop), { mode, credentials });
const endpointsOf = ({ program_id }: Shop) => stripe.endpoints.filter(({ url }) => url.endsWith(program_id));

t.test(
  'creates the webhook endpoint with exactly the events that have effects, and never shows a secret',
  async (t) => {
    const shop = await openShop(rail);
    const answer = await put(shop);
    t.equal(answer.status, 200, answer.text);
    const webhook_url = `${rail.services.base_url}/processors/stripe/${shop.program_id}`;
    t.match(answer.body, {
      ...{
        id: /^prc_/,
        object: 'processor',
        processor: 'stripe',
        mode: 'test',
        status: 'connected',
        account: 'acct_shop',
      },
      ...{ hint: 'efgh', warnings: [], webhook_url, disconnected_reason: null },
    });
    const [endpoint] = endpointsOf(shop) as [Json];
    t.match(endpoint, { url: webhook_url, api_version: '2026-10-28.endive' });
    t.same(endpoint.enabled_events, billing.types);
    t.strictSame(await shop.merchant.get(pathOf(shop)), answer.body);
    const listed = await shop.merchant.get(`/v1/programs/${shop.program_id}/processors`);
    t.strictSame(listed, { data: [answer.body], has_more: false, total_count: 1 });
    t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), { processor: 'stripe' });
    const stored = await rail.query(
      sql`select credentials from program.processor where program_id = ${shop.program_id}`,
    );
    for (const secret of [stripe.credentials.secret_key, endpoint.secret]) {
      t.notMatch(answer.text, secret);
      t.notMatch(stored[0]?.credentials.toString('latin1'), secret);
    }
  },
);

t.test('refuses a key that Stripe refuses, that is of the other mode, or that may not do what is needed', async (t) => {
  const shop = await openShop(rail);
  for (const [credentials, mode, message] of [
    [{ secret_key: 'rk_test_another_key_of_nobody' }, 'test', /Stripe refuses the key: Invalid API Key/],
    [stripe.credentials, 'live', /In live mode/],
    [{ secret_key: 'nonsense' }, 'test', /must be a secret or restricted key/],
  ] as const) {
    const { status, body, text } = await put(shop, credentials, mode);
    t.equal(status, 400);
    t.match(body.error, { code: 'invalid_parameter', param: 'credentials.secret_key', message });
    t.notMatch(text, credentials.secret_key === 'nonsense' ? 'rk_test' : credentials.secret_key);
  }
  for (const [method, path, permission] of [
    ['GET', '/v1/disputes', 'Disputes'],
    ['POST', '/v1/webhook_endpoints', 'Webhook Endpoints'],
  ]) {
    stripe.forbidden.add(`${method} ${path}`);
    const { status, body } = await put(shop);
    stripe.forbidden.clear();
    t.equal(status, 400);
    t.match(body.error, { param: 'credentials.secret_key', message: new RegExp(permission as string) });
  }
  t.same(endpointsOf(shop), []);
  t.equal((await shop.merchant.request('GET', pathOf(shop))).status, 404);
  t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), { processor: null });
});

t.test('answers 503 and keeps nothing while Stripe is away', async (t) => {
  const shop = await openShop(rail);
  stripe.fail({ path: '/v1/customers', fault: { kind: 'answer', when: 'before', answer: { status: 502 } } });
  const { status, body, headers } = await put(shop);
  t.equal(status, 503, JSON.stringify(body));
  t.equal(headers['retry-after'], '5');
  t.equal((await shop.merchant.request('GET', pathOf(shop))).status, 404);
});

t.test('replaces the endpoint with the credentials, and deletes it with the connection', async (t) => {
  const shop = await openShop(rail);
  await put(shop);
  const [first] = endpointsOf(shop) as [Json];
  await put(shop);
  await eventually(() => !endpointsOf(shop).includes(first), 'the first endpoint to be deleted');
  t.equal(endpointsOf(shop).length, 1);
  const deleted = await shop.merchant.delete(pathOf(shop));
  t.match(deleted, { object: 'processor', deleted: true });
  await eventually(() => endpointsOf(shop).length === 0, 'the endpoint to be deleted');
  t.equal((await shop.merchant.request('GET', pathOf(shop))).status, 404);
  t.match(await shop.merchant.get(`/v1/programs/${shop.program_id}`), { processor: null });
  await eventually(async () => (await mailsOf(shop)).length === 3, 'a mail for each change');
  t.same(
    (await mailsOf(shop)).map(({ subject }) => subject),
    ['made', 'changed', 'deleted'].map((verb) => `Connection to Stripe was ${verb}: Acme`),
  );
});

t.test('of two processors of a program, the one that is left is its processor', async (t) => {
  const shop = await openShop(rail);
  const path = `/v1/programs/${shop.program_id}`;
  const of_paddle = `${path}/processors/paddle`;
  await put(shop);
  await shop.merchant.request('PUT', of_paddle, { mode: 'test', credentials: paddle.credentials });
  t.match(await shop.merchant.get(path), { processor: 'paddle' });
  for (const processor of ['stripe', 'paddle']) t.match(await shop.merchant.patch(path, { processor }), { processor });
  for (const processor of [null, 'api', 'chargebee'])
    t.match(await shop.merchant.request('PATCH', path, { processor }), {
      status: 409,
      body: { error: { code: 'invalid_state_transition', message: /connected to paddle and stripe/ } },
    });
  await shop.merchant.delete(of_paddle);
  t.match(await shop.merchant.get(path), { processor: 'stripe' });
  await shop.merchant.delete(pathOf(shop));
  t.match(await shop.merchant.get(path), { processor: null });
  t.match(await shop.merchant.patch(path, { processor: 'api' }), { processor: 'api' });
});

t.test('finds a key that is refused and an endpoint that is gone, and emails the owner once', async (t) => {
  const shop = await openShop(rail);
  await put(shop);
  t.match(await shop.merchant.post(`${pathOf(shop)}/test`), { status: 'connected', warnings: [] });
  const [endpoint] = endpointsOf(shop) as [Json];
  endpoint.status = 'disabled';
  t.match(await shop.merchant.post(`${pathOf(shop)}/test`), { status: 'connected', warnings: [/deleted or disabled/] });
  endpoint.status = 'enabled';
  stripe.credentials.secret_key = 'rk_test_rolled_0123456789';
  for (const _ of [1, 2])
    t.match(await shop.merchant.post(`${pathOf(shop)}/test`), {
      ...{ status: 'disconnected', disconnected_reason: /Stripe refuses the key: Invalid API Key/ },
    });
  t.match(await put(shop), { status: 200, body: { status: 'connected', disconnected_reason: null } });
  await eventually(async () => (await mailsOf(shop)).length === 3, 'three mails');
  t.match((await mailsOf(shop))[1], { subject: 'Stripe was disconnected: Acme', text: /payments do not become sales/ });
});

const mailsOf = ({ merchant }: Shop): Promise<Json[]> =>
  rail.query(
    sql`select subject, text from core.outgoing_mail where organization_id = ${merchant.organization_id} order by id`,
  );
