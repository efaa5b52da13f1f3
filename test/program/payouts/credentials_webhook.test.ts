import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import t, { type Test } from 'tap';
import type { RailName } from '../../../src/program/payouts/rails/rail.ts';
import { rails } from '../../../src/program/payouts/rails/rails.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { payee } from './fixture.ts';
import { Attempt, startServer } from './rails/attempt.ts';
import { PayPalServer } from './rails/paypal_server.ts';
import { deliver, type Webhook } from './rails/provider_server.ts';
import { StripeServer } from './rails/stripe_server.ts';
import { WiseServer } from './rails/wise_server.ts';

const paypal = await startServer(t, new PayPalServer());
const wise = await startServer(t, new WiseServer());
const stripe = await startServer(t, new StripeServer());
const servers = { paypal, wise, stripe };
const rail = await startRail({
  worker: false,
  provider_urls: { paypal: paypal.url, wise: wise.url, stripe: stripe.url },
});
const known_roots = getCACertificates('default');
setDefaultCACertificates([...known_roots, paypal.authority.cert]);
t.teardown(() => setDefaultCACertificates(known_roots));

const urlOf = (name: string, program_id: string) => `${rail.address}/rails/${name}/${program_id}`;

const put = ({ merchant, program_id }: Shop, name: RailName, credentials: Json = servers[name].credentials) =>
  merchant.request('PUT', `/v1/programs/${program_id}/rails/${name}`, { mode: 'test', credentials });

/** A payout that was sent with a version of the credentials and is processing; its provider knows it. */
async function sent(
  shop: Shop,
  name: RailName,
  version = 1,
): Promise<{ payout_id: string; key: string; commission: Json }> {
  const { id } = await payee(shop, [1_980]);
  const [commission] = (await shop.list('commissions', `partner_id=${id}`)) as [Json];
  await shop.lock(commission);
  const { payout_id } = await shop.merchant.get(`/v1/commissions/${commission.id}`);
  const attempt = new Attempt(rails[name], servers[name], { payout_id, idempotency_key: `${payout_id}-1` });
  const outcome = (await attempt.submit()) as { reference?: string | null };
  await rail.query(sql`
    update program.payout_attempt
    set rail = ${name}, mode = 'test', credentials_version = ${version}, reference = ${outcome.reference ?? null}
    where payout_id = ${payout_id}`);
  await rail.query(sql`update program.payout set method = ${name} where id = ${payout_id}`);
  return { payout_id, key: attempt.key, commission };
}

/** Returns the look-ups that are enqueued, and removes them. */
async function lookUps(shop: Shop): Promise<string[]> {
  const jobs = await rail.query<{ id: string }>(sql`
    select j.payload->>'id' as id
    from graphile_worker._private_jobs j
    join graphile_worker._private_tasks k on k.id = j.task_id
    where k.identifier = 'program/poll_payout' and j.payload->>'organization_id' = ${shop.merchant.organization_id}
    order by j.id`);
  await rail.query(sql`
    delete from graphile_worker._private_jobs j where j.payload->>'organization_id' = ${shop.merchant.organization_id}`);
  return jobs.map(({ id }) => id);
}

/** Checks the answer to the sender of a webhook that is not valid: the same whatever is wrong. */
async function refused(t: Test, answer: Response): Promise<Json> {
  t.equal(answer.status, 400);
  const body = (await answer.json()) as Json;
  t.strictSame(body, {
    error: {
      type: 'invalid_request_error',
      code: 'invalid_parameter',
      message: 'The webhook is not valid: its signature, its time or its body.',
    },
  });
  return body;
}

const webhookOf = (name: RailName, key: string, options: Json = {}): Webhook => servers[name].webhook(key, options);

for (const name of ['paypal', 'wise', 'stripe'] as const) {
  t.test(
    `${name}: looks up what a signed webhook names, once, however often and in whichever order it comes`,
    async (t) => {
      const shop = await openShop(rail);
      await put(shop, name);
      const [one, two] = [await sent(shop, name), await sent(shop, name)];
      const url = urlOf(name, shop.program_id);
      for (const { key } of [two, one, two, one]) {
        const answer = await deliver(url, webhookOf(name, key));
        t.equal(answer.status, 200, await answer.clone().text());
        t.strictSame(await answer.json(), { received: true });
      }
      t.same((await lookUps(shop)).sort(), [one.payout_id, two.payout_id].sort());
      t.match(await shop.merchant.get(`/v1/payouts/${one.payout_id}`), { status: 'processing' }, 'it decides nothing');
    },
  );

  t.test(`${name}: refuses what is forged, stale, malformed or of an unknown program, with one answer`, async (t) => {
    const shop = await openShop(rail);
    await put(shop, name);
    const { key } = await sent(shop, name);
    const url = urlOf(name, shop.program_id);
    const good = webhookOf(name, key);
    const other = Buffer.from(good.raw_body.toString().replace('transfer', 'Transfer').replace('PAYOUTS', 'PAYOUT'));
    const stale = { at: '2026-01-01T00:00:00Z', sent_at: '2026-01-01T00:00:00Z', timestamp: 1_700_000_000 };
    for (const webhook of [
      { ...good, raw_body: other },
      { ...good, headers: {} },
      webhookOf(name, key, stale),
      { ...good, raw_body: Buffer.from('{"a":') },
      { ...good, raw_body: Buffer.alloc(0) },
      { ...good, headers: { ...good.headers, 'content-type': 'text/plain' }, raw_body: Buffer.from([0, 255]) },
    ]) {
      await refused(t, await deliver(url, webhook));
    }
    t.same(await lookUps(shop), []);
    const [elsewhere, bare] = [urlOf(name, 'prg_01kap3b6n8f2v9w4x7y0z1a2b3'), await openShop(rail)];
    for (const unknown of [elsewhere, urlOf(name, bare.program_id)]) {
      await refused(t, await deliver(unknown, { ...good, headers: {} }));
    }
  });
}

t.test("a webhook of one program's account says nothing of another program", async (t) => {
  const [shop, other] = [await openShop(rail), await openShop(rail)];
  for (const name of ['paypal', 'wise', 'stripe'] as const) await put(shop, name);
  await rail.query(sql`
    insert into program.rail (organization_id, program_id, id, rail, version, mode, credentials, created_at, updated_at)
    values ${foreign(other, 'paypal', { webhook_id: 'WHOTHER' })}, ${foreign(other, 'stripe', { webhook_secret: 'whsec_other_0123456789' })},
      ${foreign(other, 'wise', { ...wise.credentials, profile_id: '999' })}`);
  for (const name of ['paypal', 'stripe'] as const) {
    const { key } = await sent(shop, name);
    await refused(t, await deliver(urlOf(name, other.program_id), webhookOf(name, key)));
  }
  // Wise signs for all profiles with one key, so it is the profile that tells.
  const { key } = await sent(shop, 'wise');
  t.equal((await deliver(urlOf('wise', other.program_id), webhookOf('wise', key))).status, 200);
  t.same([...(await lookUps(other)), ...(await lookUps(shop))], []);
});

const foreign = ({ merchant, program_id }: Shop, name: RailName, credentials: Json) => {
  const id = `rail_${name}_${program_id}`;
  const encrypted = rail.services.vault.encrypt(JSON.stringify(credentials), id);
  return sql`(${merchant.organization_id}, ${program_id}, ${id}, ${name}, 1, 'test', ${encrypted}, now(), now())`;
};

t.test('signatures by credentials that were replaced are valid while attempts with them are open', async (t) => {
  const shop = await openShop(rail);
  await put(shop, 'stripe');
  const { payout_id, key, commission } = await sent(shop, 'stripe', 1);
  const secret = 'whsec_new_0123456789abcdef';
  await put(shop, 'stripe', { ...stripe.credentials, webhook_secret: secret });
  const url = urlOf('stripe', shop.program_id);
  t.equal((await deliver(url, webhookOf('stripe', key))).status, 200, 'the old secret');
  t.same(await lookUps(shop), [payout_id]);
  t.equal((await deliver(url, webhookOf('stripe', key, { secret }))).status, 200, 'the new secret');
  t.same(await lookUps(shop), [payout_id]);
  await shop.pay(commission);
  await refused(t, await deliver(url, webhookOf('stripe', key)));
  t.equal((await deliver(url, webhookOf('stripe', key, { secret }))).status, 200);
  await rail.query(sql`update program.payout_attempt set next_poll_at = now() where payout_id = ${payout_id}`);
  t.equal((await deliver(url, webhookOf('stripe', key))).status, 200, 'it may still come back');
});

t.test('answers 503 when the certificate cannot be fetched, so that PayPal sends the webhook again', async (t) => {
  const shop = await openShop(rail);
  await put(shop, 'paypal');
  const { payout_id, key } = await sent(shop, 'paypal');
  const cert_url = `${paypal.url}/v1/notifications/certs/CERT-unfetched`;
  const webhook = webhookOf('paypal', key, { cert_url });
  paypal.fail({ path: '/v1/notifications/certs/', fault: { kind: 'drop', when: 'before' } });
  const answer = await deliver(urlOf('paypal', shop.program_id), webhook);
  t.equal(answer.status, 503);
  t.equal(answer.headers.get('retry-after'), '60');
  t.equal((await deliver(urlOf('paypal', shop.program_id), webhook)).status, 200);
  t.same(await lookUps(shop), [payout_id]);
});

t.test('knows three providers, takes POST alone, and 64 KiB at most', async (t) => {
  const shop = await openShop(rail);
  const empty = { headers: {}, raw_body: Buffer.from('{}') };
  for (const name of ['crypto', 'bank_transfer', 'misspelt']) {
    t.equal((await deliver(urlOf(name, shop.program_id), empty)).status, 404, name);
  }
  t.equal((await fetch(urlOf('paypal', shop.program_id))).status, 405);
  const large = await deliver(urlOf('stripe', shop.program_id), { ...empty, raw_body: Buffer.alloc(65_537, ' ') });
  t.equal(large.status, 413);
  t.match(await large.json(), { error: { message: 'The body is larger than 64 KiB. Send a smaller one.' } });
  t.equal(
    (await deliver(urlOf('stripe', shop.program_id), { ...empty, raw_body: Buffer.alloc(65_536, ' ') })).status,
    400,
  );
});
