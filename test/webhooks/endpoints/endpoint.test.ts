import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import t from 'tap';
import { startNameServer } from '../../core/net/name_server.ts';
import { type Caller, type Json, type Received, sql, startRail, startReceiver } from '../../harness.ts';

const rail = await startRail();
const merchant = await rail.organization();
const stripe = new Stripe('sk_test_unused');

async function newProgram(): Promise<string> {
  return (
    await merchant.post('/v1/programs', { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' })
  ).id;
}

async function newEndpoint(fields: Json): Promise<Json> {
  return merchant.post('/v1/webhook_endpoints', { event_types: ['affiliate.created'], ...fields });
}

let nth = 0;
const addPartner = (program_id: string, as: Caller = merchant) =>
  as.post('/v1/partners', { program_id, email: `partner${++nth}@example.com` });

t.test('an endpoint receives the chosen types alone, and all types when none is chosen', async (t) => {
  const program_id = await newProgram();
  const [some, all] = [await startReceiver(), await startReceiver()];
  await newEndpoint({ program_id, url: some.url, event_types: ['affiliate.updated'] });
  await newEndpoint({ program_id, url: all.url, event_types: [] });
  const { id } = await addPartner(program_id);
  await merchant.patch(`/v1/partners/${id}`, { first_name: 'Ada' });
  await Promise.all([some.until(1), all.until(2)]);
  t.same(
    some.received.map(({ body }) => body.type),
    ['affiliate.updated'],
  );
  t.same(
    all.received.map(({ body }) => body.type),
    ['affiliate.created', 'affiliate.updated'],
  );
});

t.test('an endpoint that is switched off receives nothing until it is switched on', async (t) => {
  const program_id = await newProgram();
  const receiver = await startReceiver();
  const { id } = await newEndpoint({ program_id, url: receiver.url });
  t.match(await merchant.post(`/v1/webhook_endpoints/${id}/disable`), {
    status: 'disabled',
    disabled_reason: 'disabled_by_hand',
  });
  await addPartner(program_id);
  t.match(await merchant.post(`/v1/webhook_endpoints/${id}/enable`), { status: 'enabled', disabled_reason: null });
  const { email } = await addPartner(program_id);
  await receiver.until(1);
  t.same(
    receiver.received.map(({ body }) => body.data.email),
    [email],
  );
});

t.test('a new address receives what comes next', async (t) => {
  const program_id = await newProgram();
  const [before, after] = [await startReceiver(), await startReceiver()];
  const { id } = await newEndpoint({ program_id, url: before.url });
  await addPartner(program_id);
  await before.until(1);
  t.match(await merchant.patch(`/v1/webhook_endpoints/${id}`, { url: after.url }), { url: after.url });
  await addPartner(program_id);
  await after.until(1);
  t.equal(before.received.length, 1);
});

t.test(
  'after a rotation both secrets verify for 24 hours, the new one first, and then the new one alone',
  async (t) => {
    const program_id = await newProgram();
    const receiver = await startReceiver();
    const { id, secret: first } = await newEndpoint({ program_id, url: receiver.url });
    const { secret: second, secret_last_rotated_at } = await merchant.post(`/v1/webhook_endpoints/${id}/rotate_secret`);
    t.ok(secret_last_rotated_at);
    t.not(first, second);
    const verifies = (secret: string, { raw, headers }: { raw: string; headers: Record<string, string> }): boolean => {
      try {
        stripe.webhooks.constructEvent(raw, headers['rail-signature'] as string, secret, 300);
        new Webhook(secret).verify(raw, headers);
        return true;
      } catch {
        return false;
      }
    };
    await addPartner(program_id);
    const [during] = (await receiver.until(1)) as [Received];
    t.equal(during.headers['rail-signature']?.match(/v1=/g)?.length, 2);
    t.equal(during.headers['webhook-signature']?.split(' ').length, 2);
    t.ok(verifies(first, during) && verifies(second, during), 'both');
    const alone = { raw: during.raw, headers: { ...during.headers } };
    alone.headers['webhook-signature'] = (during.headers['webhook-signature'] as string).split(' ')[0] as string;
    t.ok(new Webhook(second).verify(alone.raw, alone.headers), 'the new one stands first');

    const { secret: third } = await merchant.post(`/v1/webhook_endpoints/${id}/rotate_secret`);
    await addPartner(program_id);
    const [, again] = await receiver.until(2);
    t.ok(again && verifies(second, again) && verifies(third, again) && !verifies(first, again), 'at most two are live');

    await rail.query(sql`update webhooks.endpoint set previous_secret_expires_at = now() where id = ${id}`);
    await addPartner(program_id);
    const [, , later] = await receiver.until(3);
    t.ok(later && verifies(third, later) && !verifies(second, later), 'the old one has run out');
  },
);

t.test('the secret is shown once, and encrypted in the database', async (t) => {
  const program_id = await newProgram();
  const { id, secret } = await newEndpoint({ program_id, url: 'http://127.0.0.1:9/' });
  t.notOk('secret' in (await merchant.get(`/v1/webhook_endpoints/${id}`)));
  const [row] = await rail.query(
    sql`select row_to_json(e)::text as stored, e.secret from webhooks.endpoint e where e.id = ${id}`,
  );
  t.notOk(row?.stored.includes(secret));
  t.notOk(row?.secret.includes(Buffer.from(secret.slice(6), 'base64')));
});

t.test('a postback receives its partner’s own events alone, without identity', async (t) => {
  const program_id = await newProgram();
  const [ada, bob] = [await addPartner(program_id), await addPartner(program_id)];
  const receiver = await startReceiver();
  const refused = await merchant.request('POST', '/v1/webhook_endpoints', {
    program_id,
    partner_id: ada.id,
    url: receiver.url,
    event_types: ['affiliate.created'],
  });
  t.match(refused.body, { error: { code: 'invalid_parameter', param: 'event_types' } });
  await newEndpoint({ program_id, partner_id: ada.id, url: receiver.url, event_types: [] });
  for (const owner of [bob, ada]) {
    const visit = {
      program_id,
      value: owner.handle,
      landing_url: 'https://acme.example.com',
      visitor_token: `visitor-${owner.id}`,
    };
    const { id: click_id } = await merchant.post('/v1/clicks', visit);
    await merchant.post('/v1/customers', { program_id, click_id, email: `customer-of-${owner.handle}@example.com` });
  }
  await receiver.until(2);
  t.same(
    receiver.received.map(({ body }) => body.type),
    ['referral.created', 'referral.lead'],
  );
  for (const { raw, body } of receiver.received) {
    t.equal(body.data.partner_id, ada.id);
    t.notMatch(raw, '@');
    t.notOk('email' in body.data);
  }
});

t.test('the test event of a postback is one that it may receive, without identity', async (t) => {
  const program_id = await newProgram();
  const { id: partner_id } = await addPartner(program_id);
  const receiver = await startReceiver();
  const { id } = await newEndpoint({ program_id, partner_id, url: receiver.url, event_types: [] });
  const ping = (body: Json) => merchant.request('POST', `/v1/webhook_endpoints/${id}/ping`, body);
  t.equal((await ping({})).body.event_type, 'referral.created');
  t.equal((await ping({ event_type: 'referral.lead' })).status, 200);
  t.match((await ping({ event_type: 'affiliate.created' })).body.error, {
    code: 'invalid_parameter',
    param: 'event_type',
  });
  const [, lead] = await receiver.until(2);
  t.equal(lead?.body.type, 'referral.lead');
  t.equal(lead?.body.data.email, undefined);
  t.notMatch(lead?.raw, '@');
});

t.test('a private address is refused when it is saved, unless the service is told to allow it', async (t) => {
  const program_id = await newProgram();
  const names: Record<string, string> = { 'hooks.acme.com': '1.2.3.4', 'inside.acme.com': '10.0.0.7' };
  const { nameServers, queries } = await startNameServer(t, (name, type) => {
    const address = names[name];
    return address ? (type === 'A' ? [address] : []) : { rcode: 3 };
  });
  Object.assign(rail.services, { allow_private_addresses: false, name_servers: nameServers });
  t.teardown(() => Object.assign(rail.services, { allow_private_addresses: true, name_servers: undefined }));
  const save = (url: string, key: string) =>
    merchant.request('POST', '/v1/webhook_endpoints', { program_id, url }, { 'Idempotency-Key': key });
  const refused = { status: 400, body: { error: { code: 'address_not_allowed', param: 'url' } } };

  for (const url of [
    'http://127.0.0.1/',
    'http://localhost/',
    'https://10.0.0.1/',
    'http://[::1]/',
    'http://2130706433/',
  ]) {
    t.match(await save(url, url), refused, url);
  }
  t.same(queries, [], 'nobody was asked about those');
  const inside = await save('https://inside.acme.com/rail', 'inside');
  const nowhere = await save('https://nowhere.acme.com/rail', 'nowhere');
  t.match(inside, refused);
  t.same([nowhere.status, nowhere.body.error.message], [400, inside.body.error.message], 'which says nothing more');

  const saved = await save('https://hooks.acme.com/rail', 'public');
  t.equal(saved.status, 201);
  names['hooks.acme.com'] = '10.0.0.7';
  t.same((await save('https://hooks.acme.com/rail', 'public')).body, saved.body, 'a replay answers as before');
  t.match(await save('https://hooks.acme.com/rail', 'another'), refused);
  const path = `/v1/webhook_endpoints/${saved.body.id}`;
  t.match(await merchant.request('PATCH', path, { url: 'https://inside.acme.com/' }), refused);
  t.equal((await merchant.patch(path, { description: 'no new address' })).url, 'https://hooks.acme.com/rail');
});

t.test('a program has at most 50 endpoints, and a partner 3 postbacks, which take no room of the others', async (t) => {
  const program_id = await newProgram();
  const partners = await Promise.all(
    ['ada', 'grace'].map((handle) =>
      merchant.post('/v1/partners', { program_id, email: `${handle}@partner.example.com`, handle }),
    ),
  );
  const make = (count: number, fields: object) =>
    Promise.all(
      Array.from({ length: count }, (_, port) =>
        merchant.request('POST', '/v1/webhook_endpoints', {
          ...{ program_id, url: `http://127.0.0.1:${port + 9000}/` },
          ...fields,
        }),
      ),
    );
  const postbacks = await Promise.all(partners.map(({ id }) => make(4, { partner_id: id })));
  const program = await make(51, {});
  for (const [answers, room, param] of [
    [postbacks[0], 3, 'partner_id'],
    [postbacks[1], 3, 'partner_id'],
    [program, 50, 'program_id'],
  ] as const) {
    t.equal(answers?.filter(({ status }) => status === 201).length, room);
    const [refused] = answers?.filter(({ status }) => status !== 201) ?? [];
    t.match(refused, { status: 402, body: { error: { code: 'plan_limit_reached', param } } });
  }
  const count = async (is_postback: boolean) =>
    (await merchant.get(`/v1/webhook_endpoints?program_id=${program_id}&is_postback=${is_postback}&limit=1`))
      .total_count;
  t.same([await count(true), await count(false)], [6, 50]);
});
