import t, { type Test } from 'tap';
import { createVault } from '../../../src/core/encryption/vault.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { credentialsOf, currentRail } from '../../../src/program/payouts/credentials/rail_credentials.ts';
import { type Caller, encryption_key, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { batchOf, payee, payoutAfter } from './fixture.ts';
import { holdsNoSecret, startServer } from './rails/attempt.ts';
import { PayPalServer } from './rails/paypal_server.ts';
import { deliver } from './rails/provider_server.ts';
import { StripeServer } from './rails/stripe_server.ts';
import { WiseServer } from './rails/wise_server.ts';

const paypal = await startServer(t, new PayPalServer());
const wise = await startServer(t, new WiseServer());
const stripe = await startServer(t, new StripeServer());
const rail = await startRail({ provider_urls: { paypal: paypal.url, wise: wise.url, stripe: stripe.url } });
const vault = createVault([encryption_key]);

const debtor = { name: 'Acme GmbH', iban: 'de89 3704 0044 0532 0130 00', bic: 'cobadeffxxx' };
const secrets = [
  ...[paypal.credentials.client_secret, wise.credentials.api_token],
  ...[stripe.credentials.secret_key, stripe.credentials.webhook_secret],
];

const pathOf = ({ program_id }: Pick<Shop, 'program_id'>, name: string) => `/v1/programs/${program_id}/rails/${name}`;
const put = ({ merchant, ...shop }: Shop, name: string, credentials: Json, mode = 'test', by: Caller = merchant) =>
  by.request('PUT', pathOf(shop, name), { mode, credentials });

const versions = ({ program_id }: Shop, name: string) =>
  rail.query<{ version: number; is_current: boolean }>(
    sql`select version, deleted_at is null as is_current from program.rail where program_id = ${program_id} and rail = ${name} order by version`,
  );

const inTenant = <T>({ merchant }: Shop, work: Parameters<typeof transaction<T>>[2]) =>
  transaction(rail.store, { organization_id: merchant.organization_id, request_id: null }, work);

const mails = async ({ merchant }: Shop, count: number): Promise<Json[]> => {
  let found: Json[] = [];
  await eventually(async () => {
    found = await rail.query(
      sql`select recipient, subject, text from core.outgoing_mail where organization_id = ${merchant.organization_id} order by created_at, id`,
    );
    return found.length >= count;
  }, `${count} mails`);
  return found;
};

t.test('keeps credentials that the provider takes, and never shows them', async (t) => {
  const shop = await openShop(rail);
  const shown = [];
  for (const [name, server, more] of [
    ['paypal', paypal, { account: 'APP-80W284485P519543T', hint: 'nt-1', warnings: [] }],
    ['wise', wise, { account: 'Acme Ltd', hint: '222', warnings: [] }],
    ['stripe', stripe, { account: 'acct_platform', hint: 'cdef' }],
  ] as const) {
    const answer = await put(shop, name, server.credentials);
    t.equal(answer.status, 200, answer.text);
    const webhook_url = `${rail.services.base_url}/rails/${name}/${shop.program_id}`;
    t.match(answer.body, {
      ...{ object: 'rail', program_id: shop.program_id, rail: name, mode: 'test', version: 1, webhook_url },
      ...more,
    });
    t.strictSame(await shop.merchant.get(pathOf(shop, name)), answer.body);
    shown.push(answer.body);
  }
  const list = await shop.merchant.get(`/v1/programs/${shop.program_id}/rails`);
  t.same(
    list.data.map(({ rail: name }: Json) => name),
    ['paypal', 'stripe', 'wise'],
  );
  t.match(list, { has_more: false, total_count: 3 });
  const told = await mails(shop, 3);
  // Mails that are written at once have no order.
  t.match(
    told.find(({ subject }) => subject === 'Credentials for PayPal were set: Acme'),
    {
      recipient: 'owner@example.com',
      text: /APP-80W284485P519543T \(ends in nt-1\), test mode, version 1/,
    },
  );
  holdsNoSecret(t, { shown, list, told }, secrets);
  const rows = await rail.query(
    sql`select to_jsonb(r)::text as row from program.rail r where program_id = ${shop.program_id}`,
  );
  const jobs = await rail.query(sql`select to_jsonb(j)::text as job from graphile_worker.jobs j`);
  holdsNoSecret(t, { rows, jobs }, secrets);
});

t.test('keeps the debtor of bank files as a bank reads it', async (t) => {
  const shop = await openShop(rail);
  for (const name of ['bank_transfer', 'wire']) {
    const answer = await put(shop, name, debtor, 'live');
    t.match(answer.body, { account: 'Acme GmbH', hint: '3000', mode: 'live', warnings: [], webhook_url: null });
  }
  t.same(await inTenant(shop, (tx) => credentialsOf(tx, vault, shop.program_id, 'wire', 1)), {
    mode: 'live',
    credentials: { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
  });
});

t.test('tells what limits payouts: a second factor at Wise, payouts not enabled at PayPal', async (t) => {
  const shop = await openShop(rail);
  wise.country = 'deu';
  t.teardown(() => {
    wise.country = 'usa';
  });
  t.match((await put(shop, 'wise', wise.credentials)).body.warnings, [/second factor .* fund them at wise.com/]);
  const { webhook_id, ...without_webhook } = paypal.credentials;
  t.match((await put(shop, 'paypal', without_webhook)).body.warnings, [
    'Without webhook_id, outcomes are polled only.',
  ]);
});

t.test('refuses what the provider refuses, names the field, and keeps nothing', async (t) => {
  const shop = await openShop(rail);
  await put(shop, 'paypal', paypal.credentials);
  const cases: [string, Json, string, string?][] = [
    ['paypal', { ...paypal.credentials, client_secret: 'wrong-secret' }, 'credentials.client_secret'],
    ['paypal', { ...paypal.credentials, webhook_id: 'WH999' }, 'credentials.webhook_id'],
    ['wise', { ...wise.credentials, api_token: 'wrong-token' }, 'credentials.api_token'],
    ['wise', { ...wise.credentials, profile_id: '9' }, 'credentials.profile_id'],
    ['stripe', { secret_key: 'sk_test_wrong0123456' }, 'credentials.secret_key'],
    ['stripe', stripe.credentials, 'credentials.secret_key', 'live'],
    ['bank_transfer', { ...debtor, iban: 'DE89370400440532013001' }, 'credentials.iban'],
    ['bank_transfer', { ...debtor, bic: 'X' }, 'credentials.bic'],
    ['wire', { ...debtor, name: ' ' }, 'credentials.name'],
  ];
  for (const [name, credentials, param, mode] of cases) {
    const answer = await put(shop, name, credentials, mode);
    t.match(answer, { status: 400, body: { error: { code: 'invalid_parameter', param } } }, `${name}: ${param}`);
    holdsNoSecret(t, answer.body, [...secrets, 'wrong-secret', 'wrong-token', 'sk_test_wrong0123456']);
  }
  const unknown = await put(shop, 'paypal', { ...paypal.credentials, misspelt: 'x' });
  t.match(unknown.body.error, { code: 'unknown_parameter', param: 'credentials.misspelt' });
  const missing = await put(shop, 'wire', { name: 'Acme', iban: debtor.iban });
  t.match(missing.body.error, { code: 'missing_parameter', param: 'credentials.bic' });
  t.same(await versions(shop, 'paypal'), [{ version: 1, is_current: true }]);
  for (const name of ['wise', 'stripe', 'bank_transfer', 'wire']) t.same(await versions(shop, name), []);
  t.equal((await mails(shop, 1)).length, 1);
});

t.test('answers 503 when the provider does not, and keeps nothing', async (t) => {
  const shop = await openShop(rail);
  stripe.fail({ path: '/v1/balance', fault: { kind: 'drop', when: 'before' } });
  const answer = await put(shop, 'stripe', stripe.credentials);
  t.match(answer, { status: 503, body: { error: { code: 'service_unavailable' } }, headers: { 'retry-after': '5' } });
  t.same(await versions(shop, 'stripe'), []);
});

t.test('has no rail for crypto, and says what to do instead', async (t) => {
  const shop = await openShop(rail);
  for (const answer of [
    await put(shop, 'crypto', {}),
    await shop.merchant.request('GET', pathOf(shop, 'crypto')),
    await shop.merchant.request('DELETE', pathOf(shop, 'crypto')),
  ]) {
    t.match(answer.body.error, { code: 'invalid_parameter', param: 'rail', message: /mark_paid/ });
  }
  const answer = await shop.merchant.request('GET', pathOf(shop, 'sepa'));
  t.match(answer.body.error, {
    code: 'invalid_parameter',
    param: 'rail',
    message: /bank_transfer, wire, paypal, wise, stripe/,
  });
});

t.test('answers 404 where the program has none, and names the remedy', async (t) => {
  const shop = await openShop(rail);
  for (const method of ['GET', 'DELETE']) {
    const answer = await shop.merchant.request(method, pathOf(shop, 'paypal'));
    t.match(answer, { status: 404, body: { error: { code: 'resource_not_found', param: 'rail', message: /PUT/ } } });
  }
});

t.test('makes a version of each change, and keeps those that attempts were sent with', async (t) => {
  const shop = await openShop(rail);
  await put(shop, 'paypal', paypal.credentials);
  const first = await inTenant(shop, (tx) => currentRail(tx, shop.program_id, 'paypal'));
  const { webhook_id, ...changed } = paypal.credentials;
  t.match((await put(shop, 'paypal', changed)).body, { version: 2 });
  t.match(first, { version: 1, mode: 'test' });
  t.match(await inTenant(shop, (tx) => currentRail(tx, shop.program_id, 'paypal')), { version: 2 });
  for (const [version, credentials] of [
    [1, paypal.credentials],
    [2, changed],
  ] as const) {
    t.same(await inTenant(shop, (tx) => credentialsOf(tx, vault, shop.program_id, 'paypal', version)), {
      mode: 'test',
      credentials,
    });
  }
  await shop.merchant.delete(pathOf(shop, 'paypal'));
  t.equal(await inTenant(shop, (tx) => currentRail(tx, shop.program_id, 'paypal')), undefined);
  t.match((await put(shop, 'paypal', changed)).body, { version: 3 }, 'a version is never given twice');
  const told = await mails(shop, 4);
  t.same(
    told.map(({ subject }) => subject).sort(),
    ['changed', 'deleted', 'set', 'set'].map((verb) => `Credentials for PayPal were ${verb}: Acme`),
  );
  t.match(
    told.find(({ subject }) => subject.includes('changed')),
    {
      text: /Before: .*version 1\nNow: .*version 2\nProgram: prg_.*\nAPI key: key_.*, of the user usr_.*\nRequest: req_/s,
    },
  );
});

t.test('makes one version of each of many changes at once', async (t) => {
  const shop = await openShop(rail);
  const answers = await Promise.all(Array.from({ length: 10 }, () => put(shop, 'wire', debtor)));
  t.same(
    answers.map(({ body }) => body.version).sort((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  t.same(
    (await versions(shop, 'wire')).filter(({ is_current }) => is_current),
    [{ version: 10, is_current: true }],
  );
});

t.test('is not deleted while payouts by it are processing, but may be changed', async (t) => {
  const shop = await openShop(rail);
  await put(shop, 'bank_transfer', debtor);
  const { body: wire } = await put(shop, 'wire', debtor);
  const commission = await bonusOf(t, shop);
  await shop.lock(commission);
  const answer = await shop.merchant.request('DELETE', pathOf(shop, 'bank_transfer'));
  t.match(answer, { status: 409, body: { error: { code: 'payout_locked', message: /processing.*PUT/s } } });
  t.match((await put(shop, 'bank_transfer', debtor)).body, { version: 2 });
  t.same(await shop.merchant.delete(pathOf(shop, 'wire')), {
    ...{ id: wire.id, object: 'rail', deleted: true },
  });
  await shop.pay(commission);
  await shop.merchant.delete(pathOf(shop, 'bank_transfer'));
});

async function bonusOf(t: Test, shop: Shop): Promise<Json> {
  const { id } = await payee(shop, [5_000]);
  const [commission] = await shop.list('commissions', `partner_id=${id}`);
  t.ok(commission);
  return commission as Json;
}

t.test('needs payouts:send to change, and payouts:read to look', async (t) => {
  const shop = await openShop(rail);
  const writer = await rail.key(shop.merchant.organization_id, { scopes: ['payouts:write', 'payouts:read'] });
  t.equal((await put(shop, 'wire', debtor, 'live', writer)).body.error.code, 'insufficient_scope');
  await put(shop, 'wire', debtor);
  t.match(await writer.get(pathOf(shop, 'wire')), { rail: 'wire' });
});

t.test('a payout is settled, and comes back, as soon as the webhook of its provider has it looked up', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['wise'] });
  const { body: set } = await put(shop, 'wise', wise.credentials, 'live');
  await payee(shop, [5_000], { payout_method: { method: 'wise', details: { account_id: '333' } } });
  await batchOf(shop);
  const [payout] = (await shop.list('payouts')) as [Json];
  await shop.merchant.post(`/v1/payouts/${payout.id}/send`);
  await eventually(async () => {
    const [attempt] = await rail.query(sql`
      select from program.payout_attempt where payout_id = ${payout.id} and reference is not null and claimed_until is null`);
    return attempt !== undefined;
  }, 'Wise to have the transfer');
  const key = `${payout.id}-1`;
  const url = set.webhook_url.replace(rail.services.base_url, rail.address);
  wise.advance(key, 'outgoing_payment_sent');
  t.equal((await deliver(url, wise.webhook(key))).status, 200);
  t.match(await payoutAfter(shop, payout, 'paid'), { livemode: true, method: 'wise' });
  wise.advance(key, 'funds_refunded');
  t.equal((await deliver(url, wise.webhook(key))).status, 200);
  t.match(await payoutAfter(shop, payout, 'failed'), { error_code: 'returned' });
});
