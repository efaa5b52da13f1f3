import { generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import { rails } from '../../../../src/program/payouts/rails/rails.ts';
import { transactionIdOf } from '../../../../src/program/payouts/rails/wise_transfer.ts';
import { Attempt, holdsNoSecret, startServer } from './attempt.ts';
import { WiseServer } from './wise_server.ts';

const start = (t: Test) => startServer(t, new WiseServer());
const calls = (server: WiseServer, path: RegExp) =>
  server.calls.filter((call) => call.method !== 'GET' && path.test(call.path)).length;

t.test('quotes, transfers and funds, and is paid once Wise has sent the money', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  t.match(await attempt.submit(), { status: 'processing', reference: /^\d+$/ });
  t.match(attempt.state, { quote_id: String, transfer_id: /^\d+$/, is_funded: 'by_rail', fee_minor: '37' });
  t.match(server.movedFor(attempt.key), { times: 1, amount_minor: 1980, currency: 'USD' });
  for (const status of ['processing', 'funds_converted', 'waiting_recipient_input_to_proceed', 'unknown']) {
    server.advance(attempt.key, status);
    t.match(await attempt.lookUp(), { status: 'processing' }, status);
  }
  server.advance(attempt.key, 'outgoing_payment_sent');
  t.match(await attempt.lookUp(), { status: 'paid', fee_minor: 37, reference: attempt.state.transfer_id });
  const transfer = server.calls.find(({ method, path }) => method === 'POST' && path === '/v1/transfers');
  t.match(JSON.parse(transfer?.raw ?? ''), {
    targetAccount: 333,
    customerTransactionId: transactionIdOf(attempt.transfer),
  });
});

t.test('derives the same transaction id from the same key', async (t) => {
  const id = transactionIdOf({ idempotency_key: 'pyt_1-1' });
  t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  t.equal(transactionIdOf({ idempotency_key: 'pyt_1-1' }), id);
  t.not(transactionIdOf({ idempotency_key: 'pyt_1-2' }), id);
});

t.test('writes amounts into the quote digit by digit', async (t) => {
  const server = await start(t);
  for (const [amount_minor, currency, written] of [
    [1980, 'USD', '19.80'],
    [500, 'JPY', '500'],
    [5124, 'KWD', '5.124'],
  ] as const) {
    const attempt = new Attempt(rails.wise, server, { amount_minor, currency });
    await attempt.submit();
    const quote = server.calls.findLast(({ path }) => path.endsWith('/quotes'));
    t.ok(quote?.raw.includes(`"targetAmount":${written},`), written);
    t.match(server.movedFor(attempt.key), { times: 1, amount_minor, currency });
  }
});

t.test('goes on where any of its calls was lost, and pays once', async (t) => {
  const server = await start(t);
  for (const path of ['/v3/profiles/222/quotes', '/v1/transfers', '/v3/profiles/222/transfers/']) {
    for (const when of ['before', 'after'] as const) {
      for (const kind of ['drop', 'answer'] as const) {
        const attempt = new Attempt(rails.wise, server);
        const fault = kind === 'drop' ? { kind, when } : { kind, when, answer: { status: 500, body: 'oops' } };
        server.fail({ path, method: 'POST', fault });
        t.match(await attempt.submit(), { status: /^(later|unknown)$/ }, `${path} ${when} ${kind}`);
        const again = await attempt.submit();
        t.match(again, { status: 'processing' }, JSON.stringify(again));
        t.equal(server.movedFor(attempt.key)?.times, 1);
        t.equal(server.movedFor(attempt.key)?.amount_minor, 1980);
      }
    }
  }
});

t.test('repeats nothing whose id was kept, whatever crashed in between', async (t) => {
  const server = await start(t);
  for (let kept = 0; kept < 3; kept += 1) {
    const attempt = new Attempt(rails.wise, server);
    let left = kept;
    const { context } = attempt;
    const crash = new Error('killed');
    const keep = async (state: Record<string, string>) => {
      if (left === 0) throw crash;
      left -= 1;
      attempt.state = { ...state };
    };
    attempt.last_sent_at = attempt.now.toISOString();
    await t.rejects(rails.wise.submit(attempt.transfer, attempt.credentials, { ...context, keep }), crash);
    t.match(await attempt.submit(), { status: 'processing' });
    t.equal(server.movedFor(attempt.key)?.times, 1, `crash at ${kept}`);
  }
  t.equal(calls(server, /payments$/), 3, 'funded once each');
});

t.test('says that an unfunded transfer is to be submitted again', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  server.fail({ path: '/v3/profiles/222/transfers/', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  t.match(await attempt.submit(), { status: 'unknown' });
  t.match(await attempt.lookUp(), { status: 'later', reason: /not funded/ });
  t.match(await attempt.submit(), { status: 'processing' });
  t.equal(calls(server, /^\/v1\/transfers$/), 1);
});

t.test('takes a new quote when the old one has ended', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  t.match(await attempt.submit(), { status: 'unknown' });
  attempt.pass(31 * 60);
  server.expireQuotes();
  t.match(await attempt.submit(), { status: 'processing' });
  t.equal(calls(server, /quotes$/), 2);
});

t.test('finds a transfer by its transaction id among all, and proves that there is none', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  t.equal(await attempt.lookUp(), undefined, 'never sent');
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'after' } });
  await attempt.submit();
  for (let other = 0; other < 101; other += 1) await new Attempt(rails.wise, server).submit();
  t.match(await attempt.lookUp(), { status: 'later', reason: /not funded/ }, 'on the second page');
  t.ok(attempt.state.transfer_id);
  const none = new Attempt(rails.wise, server);
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'drop', when: 'before' } });
  await none.submit();
  t.match(await none.lookUp(), { status: 'unknown' }, 'the call may still be under way');
  none.pass(11 * 60);
  t.equal(await none.lookUp(), undefined);
});

t.test('cancels a transfer that the balance does not cover before it counts as failed', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server, { amount_minor: 99_999_99 });
  server.fail({ path: '/v1/transfers/', method: 'PUT', fault: { kind: 'drop', when: 'before' } });
  t.match(await attempt.submit(), { status: 'later' }, 'a person could still fund it');
  t.match(await attempt.submit(), {
    status: 'failed',
    error_code: 'insufficient_funds',
    error_message: /transfer\.insufficient_funds/,
  });
  t.equal(server.movedFor(attempt.key), undefined);
});

t.test('prepares transfers where Wise wants a second factor, and says what to do', async (t) => {
  const server = await start(t);
  server.wants_second_factor = true;
  const attempt = new Attempt(rails.wise, server);
  t.match(await attempt.submit(), { status: 'processing', note: /second factor/ });
  t.match(await attempt.submit(), { status: 'processing', note: /second factor/ });
  t.equal(calls(server, /payments$/), 1);
  server.fundByHand(attempt.key);
  server.advance(attempt.key, 'outgoing_payment_sent');
  t.match(await attempt.lookUp(), { status: 'paid' });
  const dead = new Attempt(rails.wise, server);
  await dead.submit();
  server.advance(dead.key, 'cancelled');
  t.match(await dead.lookUp(), { status: 'failed', error_code: 'provider_rejected' }, 'after 14 days unfunded');
});

t.test('reads what became of a transfer that was sent', async (t) => {
  const server = await start(t);
  for (const [status, expected] of [
    ['bounced_back', { status: 'processing', note: /sent it back/ }],
    ['cancelled', { status: 'failed', error_code: 'provider_rejected' }],
    ['funds_refunded', { status: 'returned', error_code: 'returned' }],
    ['charged_back', { status: 'returned', error_code: 'returned' }],
  ] as const) {
    const attempt = new Attempt(rails.wise, server);
    await attempt.submit();
    server.advance(attempt.key, status);
    t.match(await attempt.lookUp(), expected, status);
  }
});

t.test('maps refusals to the error codes', async (t) => {
  const server = await start(t);
  for (const [fields, error_code] of [
    [{ destination: { account_id: '999' } }, 'recipient_invalid'],
    [{ destination: { account_id: 'not-a-number' } }, 'recipient_invalid'],
    [{ currency: 'CHF' }, 'currency_not_supported'],
  ] as const) {
    t.match(await new Attempt(rails.wise, server, fields).submit(), { status: 'failed', error_code });
  }
  const answer = { status: 422, body: { errors: [{ code: 'TRANSFER_LIMIT_EXCEEDED', message: 'Too much.' }] } };
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer } });
  t.match(await new Attempt(rails.wise, server).submit(), { status: 'failed', error_code: 'limit_exceeded' });
  const slow = { status: 429, headers: { 'retry-after': '9' } };
  server.fail({ path: '/v1/transfers', method: 'POST', fault: { kind: 'answer', when: 'before', answer: slow } });
  t.match(await new Attempt(rails.wise, server).submit(), { status: 'later', retry_after_s: 9 });
});

t.test('gives up a transfer that is not converted yet', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  await attempt.submit();
  t.match(await attempt.cancel(), { status: 'failed' });
  const sent = new Attempt(rails.wise, server);
  await sent.submit();
  server.advance(sent.key, 'outgoing_payment_sent');
  t.match(await sent.cancel(), { status: 'paid' });
  server.advance(sent.key, 'funds_converted');
  t.match(await sent.cancel(), { status: 'processing' }, 'Wise refuses');
});

t.test('tries credentials, names the field that is wrong, and warns of the second factor', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  t.same(await attempt.check(), { account: 'Acme Ltd', warnings: [] });
  server.country = 'deu';
  t.match(await attempt.check(), { warnings: [/second factor/] });
  const wrong = (fields: object) => attempt.check({ ...server.credentials, ...fields });
  await t.rejects(wrong({ profile_id: '9' }), { code: 'invalid_parameter', details: { param: 'profile_id' } });
  await t.rejects(wrong({ api_token: 'wrong-token' }), { code: 'invalid_parameter', details: { param: 'api_token' } });
  server.fail({ path: '/v2/profiles', fault: { kind: 'drop', when: 'before' } });
  await t.rejects(attempt.check(), { code: 'service_unavailable' });
});

t.test('verifies webhooks, and says what to look up', async (t) => {
  const server = await start(t);
  const attempt = new Attempt(rails.wise, server);
  await attempt.submit();
  const genuine = server.webhook(attempt.key);
  t.same(await attempt.verify(genuine), { references: [attempt.state.transfer_id], idempotency_keys: [] });
  const none = { references: [], idempotency_keys: [] };
  t.same(await attempt.verify(server.webhook(attempt.key, { is_test: true })), none);
  t.same(await attempt.verify(server.webhook(attempt.key, { event_type: 'balances#update' })), none);
  const refused = { name: 'WebhookRefused' };
  await t.rejects(attempt.verify({ ...genuine, raw_body: Buffer.from(`${genuine.raw_body} `) }), refused);
  await t.rejects(attempt.verify({ ...genuine, headers: {} }), refused);
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signed_with = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  await t.rejects(attempt.verify(server.webhook(attempt.key, { signed_with })), refused);
  await t.rejects(attempt.verify(server.webhook(attempt.key, { sent_at: '2020-01-01T00:00:00Z' })), refused);
  const { webhook_public_key: _, ...published } = server.credentials;
  attempt.credentials = published;
  await t.rejects(attempt.verify(genuine), refused, 'the published key of the sandbox did not sign it');
  await t.rejects(attempt.verify(genuine, { mode: 'live' }), refused);
});

t.test('shows no secret, also where Wise quotes one', async (t) => {
  const server = await start(t);
  const api_token = 'wrong-token-0123';
  const attempt = new Attempt(rails.wise, server, { credentials: { ...server.credentials, api_token } });
  const outcome = await attempt.submit();
  t.match(outcome, { status: 'failed', error_message: 'invalid_token: Bearer [secret]' });
  holdsNoSecret(t, outcome, [api_token]);
  holdsNoSecret(t, await attempt.check().catch((error) => error), [api_token]);
});
