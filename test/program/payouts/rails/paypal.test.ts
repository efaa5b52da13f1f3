import { generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { selfSigned } from '../../../../src/demo/authority.ts';
import { rails } from '../../../../src/program/payouts/rails/rails.ts';
import { stablePort } from '../../../ports.ts';
import { Attempt, holdsNoSecret, startServer } from './attempt.ts';
import { PayPalServer } from './paypal_server.ts';

const start = (t: Test) => startServer(t, new PayPalServer());
const posts = (server: PayPalServer) =>
  server.calls.filter(({ method, path }) => method === 'POST' && path === '/v1/payments/payouts');

t.test('pays once the item succeeds, not when the batch is accepted', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  t.match(await attempt.submit(), { status: 'processing', reference: null });
  t.equal(server.movedFor(attempt.key), undefined);
  t.match(await attempt.lookUp(), { status: 'paid', paid_at: '2026-11-22T10:17:41.000Z', fee_minor: 25 });
  t.match(server.movedFor(attempt.key), { times: 1, amount_minor: 1980, currency: 'USD' });
  const [post] = posts(server);
  t.equal(post?.headers['paypal-request-id'], attempt.key);
  t.match(JSON.parse(post?.raw ?? ''), {
    sender_batch_header: { sender_batch_id: attempt.key, email_subject: 'Your payout from Acm' },
    items: [{ sender_item_id: attempt.key, amount: { value: '19.80', currency: 'USD' } }],
  });
});

t.test('sends whole amounts where PayPal knows no decimals', async (t) => {
  const server = await start(t);
  for (const [amount_minor, currency, value] of [
    [500, 'JPY', '500'],
    [100_000, 'HUF', '1000'],
  ] as const) {
    const attempt = new Attempt(rails.paypal, server, { amount_minor, currency });
    t.match(await attempt.submit(), { status: 'processing' });
    t.equal(JSON.parse(posts(server).at(-1)?.raw ?? '').items[0].amount.value, value);
    await attempt.lookUp();
    t.match(server.movedFor(attempt.key), { times: 1, amount_minor, currency });
  }
});

t.test('finds the original batch by the duplicate error when the answer was lost', async (t) => {
  const server = await start(t);
  for (const fault of [
    { kind: 'drop', when: 'after' },
    { kind: 'answer', when: 'after', answer: { status: 500, body: { name: 'INTERNAL_ERROR' } } },
    { kind: 'answer', when: 'after', answer: { status: 503 } },
    { kind: 'answer', when: 'after', answer: { status: 201, body: '{"batch_header":' } },
  ] as const) {
    const attempt = new Attempt(rails.paypal, server);
    server.fail({ path: '/v1/payments/payouts', method: 'POST', fault });
    t.match(await attempt.submit(), { status: 'unknown' });
    t.match(await attempt.lookUp(), { status: 'unknown' }, 'PayPal cannot be asked without the batch id');
    t.match(await attempt.submit(), { status: 'paid' });
    t.match(await attempt.submit(), { status: 'paid' });
    t.equal(server.movedFor(attempt.key)?.times, 1);
    const [first, second] = posts(server).slice(-2);
    t.equal(first?.raw, second?.raw, 'the same bytes');
  }
});

t.test('tries again after what had no effect', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  const answer = { status: 429, headers: { 'retry-after': '17' }, body: { name: 'RATE_LIMIT_REACHED' } };
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  t.match(await attempt.submit(), { status: 'later', retry_after_s: 17 });
  t.equal(attempt.last_sent_at, null);
  t.equal(await attempt.lookUp(), undefined, 'nothing can have arrived');
  server.revokeTokens();
  server.fail({ path: '/v1/oauth2/token', fault: { kind: 'drop', when: 'before' } });
  t.match(await attempt.submit(), { status: 'later' }, 'without a token, nothing was sent');
  t.match(await attempt.submit(), { status: 'processing' });
});

t.test('says later when nobody listens', async (t) => {
  const server = await new PayPalServer().start(await stablePort());
  const attempt = new Attempt(rails.paypal, server);
  await server.stop();
  t.match(await attempt.submit(), { status: 'later', reason: /ECONNREFUSED/ });
});

t.test('is cut off while PayPal is silent, and does not know what came of it', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  await attempt.check();
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'hang', when: 'after' } });
  const cut_off = new AbortController();
  const context = { ...attempt.context, cut_off: cut_off.signal };
  const submitted = rails.paypal.submit(attempt.transfer, attempt.credentials, context);
  while (posts(server).length === 0) await new Promise(setImmediate);
  cut_off.abort();
  t.match(await submitted, { status: 'unknown' });
});

t.test('gets one new token when PayPal no longer takes the old one', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  await attempt.submit();
  const tokens = () => server.calls.filter(({ path }) => path === '/v1/oauth2/token').length;
  t.equal(tokens(), 1);
  await attempt.lookUp();
  t.equal(tokens(), 1);
  server.revokeTokens();
  t.match(await attempt.lookUp(), { status: 'paid' });
  t.equal(tokens(), 2);
  attempt.pass(server.token_life_s - 30);
  await attempt.lookUp();
  t.equal(tokens(), 3, 'a token is replaced shortly before it ends');
});

t.test('maps refusals and states of items to the error codes', async (t) => {
  const server = await start(t);
  const low = new Attempt(rails.paypal, server, { amount_minor: 99_999_99 });
  t.match(await low.submit(), {
    status: 'failed',
    error_code: 'insufficient_funds',
    error_message: /INSUFFICIENT_FUNDS/,
  });
  const nobody = new Attempt(rails.paypal, server, { destination: { email: 'nobody' } });
  t.match(await nobody.submit(), { status: 'failed', error_code: 'recipient_invalid' });
  server.next_status = 'PENDING';
  for (const [status, name, expected] of [
    ['PENDING', undefined, { status: 'processing' }],
    ['ONHOLD', undefined, { status: 'processing', note: /holds/ }],
    ['UNCLAIMED', 'RECEIVER_UNREGISTERED', { status: 'processing', note: /claimed/ }],
    ['FAILED', 'RECEIVER_ACCOUNT_LOCKED', { status: 'failed', error_code: 'account_closed' }],
    ['FAILED', 'SPENDING_LIMIT_EXCEEDED', { status: 'failed', error_code: 'limit_exceeded' }],
    ['FAILED', 'SOMETHING_NEW', { status: 'failed', error_code: 'provider_rejected' }],
    ['BLOCKED', undefined, { status: 'failed', error_code: 'compliance_hold' }],
    ['RETURNED', undefined, { status: 'failed', error_code: 'recipient_unclaimed' }],
    ['REFUNDED', undefined, { status: 'returned', error_code: 'returned' }],
    ['REVERSED', undefined, { status: 'returned', error_code: 'returned' }],
    ['SUCCESS', undefined, { status: 'paid' }],
  ] as const) {
    const attempt = new Attempt(rails.paypal, server);
    await attempt.submit();
    server.settle(attempt.key, status, name && { name, message: 'PayPal says why.' });
    t.match(await attempt.lookUp(), expected, status);
  }
});

t.test('does not take the refusal of a repetition for the fate of the first call', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'drop', when: 'after' } });
  t.match(await attempt.submit(), { status: 'unknown' });
  const answer = { status: 422, body: { name: 'INSUFFICIENT_FUNDS', message: 'Add funds.' } };
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  t.match(await attempt.submit(), { status: 'unknown' });
  t.match(await attempt.submit(), { status: 'paid' });
  t.equal(server.movedFor(attempt.key)?.times, 1);
});

t.test('never repeats the call once PayPal may have forgotten the key', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'drop', when: 'after' } });
  await attempt.submit();
  attempt.pass(29 * 86_400 + 1);
  t.match(await attempt.submit(), { status: 'unknown' });
  t.equal(posts(server).length, 1);
});

t.test('gives up an item that nobody claimed', async (t) => {
  const server = await start(t);
  server.next_status = 'UNCLAIMED';
  const attempt = new Attempt(rails.paypal, server);
  await attempt.submit();
  t.match(await attempt.cancel(), { status: 'failed', error_code: 'recipient_unclaimed' });
  t.equal(server.movedFor(attempt.key)?.came_back, true);
});

t.test('tries credentials, and names the field that is wrong', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  t.same(await attempt.check(), { account: 'APP-80W284485P519543T', warnings: [] });
  await t.rejects(attempt.check({ ...server.credentials, client_secret: 'wrong' }), {
    code: 'invalid_parameter',
    details: { param: 'client_secret' },
  });
  await t.rejects(attempt.check({ ...server.credentials, webhook_id: 'WHother' }), {
    code: 'invalid_parameter',
    details: { param: 'webhook_id' },
  });
  const { webhook_id: _, ...without } = server.credentials;
  t.match(await attempt.check(without), { warnings: [/polled/] });
  server.scopes = 'openid';
  server.revokeTokens();
  attempt.pass(server.token_life_s);
  t.match(await attempt.check(), { warnings: [/not enabled/] });
});

t.test('verifies webhooks offline, and says what to look up', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  await attempt.submit();
  const authorities = [server.authority.cert];
  const certificates = () => server.calls.filter(({ path }) => path.includes('/certs/')).length;
  const webhook = server.webhook(attempt.key);
  t.match(await attempt.verify(webhook, { authorities }), { idempotency_keys: [attempt.key], references: [String] });
  t.match(
    await attempt.verify(webhook, { authorities }),
    { idempotency_keys: [attempt.key] },
    'twice is no other thing',
  );
  const batch = server.webhook(attempt.key, { event_type: 'PAYMENT.PAYOUTSBATCH.SUCCESS' });
  t.match(await attempt.verify(batch, { authorities }), { idempotency_keys: [attempt.key], references: [] });
  const other = server.webhook(attempt.key, { event_type: 'PAYMENT.CAPTURE.COMPLETED' });
  t.same(await attempt.verify(other, { authorities }), { references: [], idempotency_keys: [] });
  t.equal(certificates(), 1, 'the certificate is fetched once');
});

t.test('refuses webhooks that are forged, stale or malformed', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.paypal, server);
  await attempt.submit();
  const authorities = [server.authority.cert];
  const refused = async (webhook: ReturnType<PayPalServer['webhook']>, message: RegExp, context = {}) =>
    t.rejects(attempt.verify(webhook, { authorities, ...context }), { name: 'WebhookRefused', message });
  const genuine = server.webhook(attempt.key);
  await refused({ ...genuine, raw_body: Buffer.from(genuine.raw_body.toString().replace('1.0', '1.1')) }, /signature/);
  const later = new Date(Date.now() + 5 * 86_400_000);
  await refused(genuine, /stale/, { now: later });
  await refused(server.webhook(attempt.key, { at: 'yesterday' }), /stale/);
  await refused({ ...genuine, raw_body: Buffer.from('{') }, /JSON/);
  await refused({ ...genuine, headers: { ...genuine.headers, 'paypal-auth-algo': 'none' } }, /algorithm/);
  await refused({ ...genuine, headers: {} }, /missing/);
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const signed_with = stranger.export({ type: 'pkcs8', format: 'pem' }) as string;
  await refused(server.webhook(attempt.key, { signed_with }), /signature/);
  for (const cert_url of [
    'https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1',
    'http://api.sandbox.paypal.com/v1/notifications/certs/CERT-1',
    'https://user@api.sandbox.paypal.com/v1/notifications/certs/CERT-1',
    'https://api.sandbox.paypal.com/v1/notifications/certs/../../oauth2/token',
    'https://api.paypal.com/v1/notifications/certs/CERT-1',
    'nothing',
  ]) {
    await refused(server.webhook(attempt.key, { cert_url }), /URL of PayPal/);
  }
  await refused(genuine, /known authority/, { authorities: [selfSigned({ name: 'another authority' }).cert] });
  await refused(server.webhook(attempt.key), /known authority/, { authorities: undefined });
  server.fail({ path: '/v1/notifications/certs', fault: { kind: 'answer', when: 'before', answer: { status: 503 } } });
  const fresh = server.webhook(attempt.key, { cert_url: `${server.url}/v1/notifications/certs/CERT-2` });
  await t.rejects(attempt.verify(fresh, { authorities }), { name: 'WebhookNotVerifiable' });
});

t.test('shows no secret, also where PayPal quotes one', async (t) => {
  const server = await start(t);
  const { client_id, client_secret } = server.credentials;
  const secrets = [client_secret, Buffer.from(`${client_id}:${client_secret}`).toString('base64'), 'A21AA'];
  const attempt = new Attempt(rails.paypal, server);
  await attempt.check();
  const wrong = { ...server.credentials, client_secret: 'another-secret' };
  const thrown = await attempt.check(wrong).catch((error) => error);
  holdsNoSecret(t, thrown, [
    ...secrets,
    'another-secret',
    Buffer.from(`${client_id}:another-secret`).toString('base64'),
  ]);
  const bearer = () => server.calls.at(-1)?.headers.authorization?.slice('Bearer '.length) ?? '';
  await attempt.check();
  const answer = {
    status: 403,
    body: { name: 'NOT_AUTHORIZED', message: `Token ${bearer()} of ${client_secret} may not.` },
  };
  server.fail({ path: '/v1/payments/payouts', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  const outcome = await attempt.submit();
  t.match(outcome, { status: 'failed', error_message: /NOT_AUTHORIZED: Token \[secret\] of \[secret\] may not\./ });
  holdsNoSecret(t, outcome, secrets);
});
