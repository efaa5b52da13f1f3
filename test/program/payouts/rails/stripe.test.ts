import t, { type Test } from 'tap';
import { rails } from '../../../../src/program/payouts/rails/rails.ts';
import { Attempt, holdsNoSecret, startServer } from './attempt.ts';
import { StripeServer } from './stripe_server.ts';

const start = (t: Test) => startServer(t, new StripeServer());
const posts = (server: StripeServer) => server.calls.filter(({ method }) => method === 'POST');

t.test('pays by one transfer to the connected account', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  t.equal(await attempt.lookUp(), undefined);
  t.match(await attempt.submit(), { status: 'paid', reference: /^tr_/, fee_minor: 0 });
  t.match(server.movedFor(attempt.key), { times: 1, amount_minor: 1980, currency: 'USD' });
  const [post] = posts(server);
  t.equal(post?.headers['idempotency-key'], attempt.key);
  t.match(Object.fromEntries(new URLSearchParams(post?.raw)), {
    amount: '1980',
    currency: 'usd',
    destination: 'acct_partner',
    transfer_group: attempt.key,
    'metadata[payout_id]': attempt.transfer.payout_id,
  });
  t.notOk(post?.headers['x-stripe-client-telemetry']);
});

t.test('sends amounts in the units that Stripe counts in', async (t) => {
  const server = await start(t);
  server.balances.isk = server.balances.mga = server.balances.twd = 1_000_000;
  for (const [amount_minor, currency, amount] of [
    [1980, 'USD', '1980'],
    [500, 'JPY', '500'],
    [5120, 'KWD', '5120'],
    [100_050, 'HUF', '100050'],
    [100_000, 'TWD', '100000'],
    [5, 'ISK', '500'],
    [300, 'MGA', '3'],
  ] as const) {
    const attempt = new Attempt(rails.stripe, server, { amount_minor, currency });
    t.match(await attempt.submit(), { status: 'paid' }, currency);
    t.equal(new URLSearchParams(posts(server).at(-1)?.raw).get('amount'), amount, currency);
  }
});

t.test('finds a transfer whose answer was lost, and pays once', async (t) => {
  const server = await start(t);
  for (const fault of [
    { kind: 'drop', when: 'after' },
    { kind: 'answer', when: 'after', answer: { status: 500, body: { error: { type: 'api_error', message: 'Oops' } } } },
    { kind: 'answer', when: 'after', answer: { status: 503, body: {} } },
    { kind: 'answer', when: 'after', answer: { status: 200, body: '{"id":' } },
    { kind: 'answer', when: 'after', answer: { status: 200, body: {} } },
  ] as const) {
    const attempt = new Attempt(rails.stripe, server);
    server.fail({ path: '/v1/transfers', method: 'POST', fault });
    t.match(await attempt.submit(), { status: 'unknown' }, JSON.stringify(fault));
    t.match(await attempt.lookUp(), { status: 'paid' });
    t.match(await attempt.submit(), { status: 'paid' });
    t.equal(server.movedFor(attempt.key)?.times, 1);
  }
});

t.test('repeats the same bytes under the same key while the first call is in doubt', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  t.match(await attempt.submit(), { status: 'unknown' });
  t.match(await attempt.lookUp(), { status: 'unknown' }, 'the call may still be under way');
  t.match(await attempt.submit(), { status: 'paid' });
  const [first, second] = posts(server);
  t.equal(first?.raw, second?.raw);
  t.equal(first?.headers['idempotency-key'], second?.headers['idempotency-key']);
});

t.test('proves that there is no transfer once the call is long over, and never repeats it after a day', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  await attempt.submit();
  attempt.pass(11 * 60);
  t.equal(await attempt.lookUp(), undefined);
  attempt.pass(23 * 3600);
  t.match(await attempt.submit(), { status: 'failed', error_code: 'provider_unavailable' });
  t.equal(posts(server).length, 1);
});

t.test('looks up instead of paying twice once Stripe has forgotten the key', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'after' } });
  await attempt.submit();
  server.forgetKeys();
  attempt.pass(25 * 3600);
  t.match(await attempt.submit(), { status: 'paid' });
  t.equal(server.movedFor(attempt.key)?.times, 1);
});

t.test('tries again after 429, a conflict of keys and a look-up that failed', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  const answer = { status: 429, headers: { 'retry-after': '3' }, body: { error: { message: 'Too many' } } };
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  t.match(await attempt.submit(), { status: 'later', retry_after_s: 3 });
  const other = new Attempt(rails.stripe, server);
  const conflict = { status: 409, body: { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } } };
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer: conflict } });
  t.match(await other.submit(), { status: 'unknown' });
  server.fail({ path: '/v1/transfers', method: 'GET', fault: { kind: 'drop', when: 'before' } });
  t.match(await other.submit(), { status: 'later' });
  server.fail({
    path: '/v1/transfers',
    method: 'GET',
    fault: { kind: 'answer', when: 'before', answer: { status: 500 } },
  });
  t.match(await other.lookUp(), { status: 'later' });
});

t.test('maps refusals to the error codes', async (t) => {
  const server = await start(t);
  for (const [fields, error_code] of [
    [{ amount_minor: 99_999_99 }, 'insufficient_funds'],
    [{ destination: { account_id: 'acct_gone' } }, 'recipient_invalid'],
    [{ currency: 'CHF' }, 'currency_not_supported'],
  ] as const) {
    t.match(await new Attempt(rails.stripe, server, fields).submit(), { status: 'failed', error_code });
  }
  for (const [code, error_code] of [
    ['insufficient_capabilities_for_transfer', 'recipient_invalid'],
    ['account_closed', 'account_closed'],
    ['amount_too_large', 'limit_exceeded'],
    ['transfers_not_allowed', 'provider_rejected'],
  ] as const) {
    const answer = { status: 400, body: { error: { type: 'invalid_request_error', code, message: 'No.' } } };
    server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
    t.match(await new Attempt(rails.stripe, server).submit(), {
      status: 'failed',
      error_code,
      error_message: `${code}: No.`,
    });
  }
});

t.test('does not take the refusal of a repetition for the fate of the first call', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  await attempt.submit();
  const answer = { status: 401, body: { error: { message: 'Expired API Key' } } };
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  t.match(await attempt.submit(), { status: 'unknown' });
  t.match(await attempt.submit(), { status: 'paid' });
});

t.test('takes a reversal for a return, and a reversal in part for none', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  await attempt.submit();
  server.reverse(attempt.key, 100);
  t.match(await attempt.lookUp(), { status: 'paid' });
  server.reverse(attempt.key);
  t.match(await attempt.lookUp(), { status: 'returned', error_code: 'returned' });
});

t.test('tries credentials, and names the field that is wrong', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  t.match(await attempt.check(), { account: 'acct_platform', warnings: [/not their bank/] });
  for (const secret_key of ['sk_live_0123456789abcdef', 'sk_test_wrong012345678']) {
    await t.rejects(attempt.check({ secret_key }), { code: 'invalid_parameter', details: { param: 'secret_key' } });
  }
  t.match(await attempt.check({ secret_key: server.credentials.secret_key }), { warnings: [/bank/, /polled/] });
  server.fail({ path: '/v1/balance', fault: { kind: 'answer', when: 'before', answer: { status: 500 } } });
  await t.rejects(attempt.check(), { code: 'service_unavailable' });
});

t.test('verifies events, and says what to look up', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.stripe, server);
  await attempt.submit();
  const subjects = { references: [/^tr_/], idempotency_keys: [attempt.key] };
  t.match(await attempt.verify(server.webhook(attempt.key, { type: 'transfer.reversed' })), subjects);
  const genuine = server.webhook(attempt.key);
  t.match(await attempt.verify(genuine), subjects);
  t.match(await attempt.verify(genuine), subjects);
  const refused = { name: 'WebhookRefused' };
  await t.rejects(attempt.verify({ ...genuine, raw_body: Buffer.from(`${genuine.raw_body} `) }), refused);
  await t.rejects(attempt.verify(server.webhook(attempt.key, { secret: 'whsec_ofsomebodyelse' })), refused);
  const stale = Math.floor(attempt.now.getTime() / 1000) - 301;
  await t.rejects(attempt.verify(server.webhook(attempt.key, { timestamp: stale })), refused);
  await t.rejects(attempt.verify({ ...genuine, headers: {} }), refused);
  attempt.credentials = { secret_key: server.credentials.secret_key };
  await t.rejects(attempt.verify(genuine), refused);
});

t.test('shows no secret, also where Stripe quotes one', async (t) => {
  const server = await start(t);
  const secrets = ['sk_test_wrong012345678', server.credentials.secret_key, server.credentials.webhook_secret];
  const attempt = new Attempt(rails.stripe, server, { credentials: { secret_key: 'sk_test_wrong012345678' } });
  const outcome = await attempt.submit();
  t.match(outcome, {
    status: 'failed',
    error_code: 'provider_rejected',
    error_message: /Invalid API Key: Bearer \[secret\]/,
  });
  holdsNoSecret(t, outcome, secrets);
  holdsNoSecret(t, await attempt.check().catch((error) => error), secrets);
});
