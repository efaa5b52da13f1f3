import t from 'tap';
import { command } from '../../command_process.ts';
import { encryption_key, eventually, type Json, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { faultsOf, idle, ledgerOf, open } from './chaos.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop } from './stripe_shop.ts';

const plot = { customers: 12, seed: 7, since: Math.floor(Date.now() / 1000) - 28 * 86_400 };

t.test(
  'a history that is read has the ledger of events that came one by one, and twice it is nothing new',
  async (t) => {
    const [calm, old] = [await startServer(t, new StripeAccount()), await startServer(t, new StripeAccount())];
    const in_order = await startRail({ provider_urls: { stripe: calm.url } });
    const one = await open(in_order, calm, plot);
    for (const event of one.story.events) await one.shop.send(event);
    await idle(in_order);

    const rail = await startRail({ provider_urls: { stripe: old.url } });
    const other = await open(rail, old, plot);
    const environment = {
      ...{ DATABASE_URL: rail.url, RAIL_STRIPE_URL: old.url, LOG_LEVEL: 'error' },
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
    };
    const since = new Date(plot.since * 1000 - 1000).toISOString();
    const asked = ['processor', 'backfill', 'stripe', '--program', other.shop.program_id, '--since', since, '--json'];
    const run = async (...more: string[]): Promise<Json> => {
      const { code, stdout, stderr } = await command([...asked, ...more], environment);
      t.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const dry = await run('--dry-run');
    t.ok(dry.found > 50, `${dry.found} found`);
    t.same(await other.shop.inbox(), []);
    const today = new Date().setUTCHours(0, 0, 0, 0);
    t.match(await run('--dry-run', '--since', '30d'), { since: new Date(today - 30 * 86_400_000).toISOString() });
    t.match(await run(), { found: dry.found, read: dry.read });
    await idle(rail);
    t.same(await faultsOf(rail, other.shop, other.story), []);
    t.same(money(await ledgerOf(rail, other.shop)), money(await ledgerOf(in_order, one.shop)));
    t.match(await run(), { found: 0, read: dry.read });
    const { backfill } = await other.shop.merchant.get(`/v1/programs/${other.shop.program_id}/processors/stripe`);
    t.match(backfill, { status: 'done', found: 0, read: dry.read, dry_run: false });
  },
);

t.test('a worker reads the history that a request asks for, and goes on after a failure', async (t) => {
  const stripe = await startServer(t, new StripeAccount());
  const rail = await startRail({ provider_urls: { stripe: stripe.url } });
  const shop = await openStripeShop(rail, stripe);
  const click = await shop.click(shop.partner_of);
  stripe.put(objects.customer('cus_old', { metadata: { rail_click: click.id } }));
  const ids = Array.from({ length: 130 }, (_, nth) => `in_old_${nth}`);
  for (const id of ids) stripe.put(objects.invoice(id, 'cus_old'));
  const path = `/v1/programs/${shop.program_id}/processors/stripe`;
  const since = '2025-11-01T00:00:00.000Z';
  const start = (body: Json) => shop.merchant.request('POST', `${path}/backfill`, body);
  const ended = (status: string) =>
    eventually(async () => (await shop.merchant.get(path)).backfill.status === status, `a backfill that is ${status}`);
  const read = async () => (await shop.merchant.get(path)).backfill;

  t.match(await start({ since, dry_run: true }), {
    ...{ status: 202, body: { backfill: { since, dry_run: true, status: 'running', read: 0, found: 0 } } },
  });
  await ended('done');
  const dry = await read();
  t.match(dry, { dry_run: true, read: 131, found: 131 });
  t.same(await shop.inbox(), []);

  // The second page of invoices fails once: the job is run again.
  stripe.calls.length = 0;
  stripe.fail({ path: '/v1/invoices', fault: { kind: 'answer', when: 'before', answer: { status: 502 } } });
  const begun = await start({ since });
  t.match(begun, { status: 202, body: { backfill: { dry_run: false, status: 'running' } } });
  t.match(await start({ since: '2025-10-01T00:00:00.000Z' }), {
    ...{ status: 409, body: { error: { code: 'invalid_state_transition', message: /is running/ } } },
  });
  await ended('done');
  t.match(await read(), { read: dry.read, found: dry.found, error: null });
  await shop.settled();
  t.equal((await shop.merchant.get(`/v1/sales?program_id=${shop.program_id}`)).total_count, 130);
  const customers = stripe.calls.filter((call) => call.path === '/v1/customers' && call.query.has('created[gte]'));
  t.equal(customers.length, 1, 'what was read is not read again');
  t.same(
    await start({ since })
      .then(() => ended('done'))
      .then(read)
      .then(({ found }) => found),
    0,
  );

  stripe.credentials.secret_key = 'rk_test_rolled_000000000';
  await start({ since: '2025-10-01T00:00:00.000Z' });
  await ended('failed');
  t.match(await shop.merchant.get(path), { status: 'disconnected', backfill: { error: /refuses the key/ } });
  t.match(await start({ since }), { status: 409 });
  await shop.merchant.request('PUT', path, { mode: 'test', credentials: stripe.credentials });
  t.match(await read(), { status: 'failed' });
  await start({ since: '2025-10-01T00:00:00.000Z' });
  await ended('done');
  for (const [body, param] of [
    [{}, 'since'],
    [{ since: '1999-01-01T00:00:00Z' }, 'since'],
    [{ since, dry_run: 'no' }, 'dry_run'],
  ] as const)
    t.match(await start(body), { status: 400, body: { error: { param } } });
  const bare = await shop.merchant.request('POST', `/v1/programs/${shop.program_id}/processors/paddle/backfill`, {
    since,
  });
  t.match(bare, { status: 404, body: { error: { param: 'processor' } } });
});

/** When disputes were closed, and refunds that failed, are not in what Stripe keeps of them. */
const money = (ledger: string[]): Json[] =>
  ledger
    .filter((row) => row.startsWith('{"charge"'))
    .map((row) => {
      const { charge, amount, refunded, status, customer } = JSON.parse(row);
      return { charge, amount, refunded, status, customer };
    });
