import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { retryAfterOf } from '../../src/core/net/answer.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { newId } from '../../src/core/values/id.ts';
import { operations } from '../../src/operations.ts';
import { catalogue } from '../../src/recruitment/events/catalogue.ts';
import { event } from '../../src/recruitment/events/event.ts';
import { isChatAddress } from '../../src/webhooks/queue/chat.ts';
import { type Caller, eventually, type Json, type Received, sql, startRail, startReceiver } from '../harness.ts';

const rail = await startRail();
const path = '/recruitment/v1/webhook_endpoints';

type Draft = ReturnType<typeof event>;
const emit = ({ organization_id }: Caller, ...drafts: Draft[]) =>
  transaction(rail.store, { organization_id, request_id: newId('req') }, async (tx) => {
    for (const draft of drafts) tx.emit(draft);
  });
const example = <Type extends keyof typeof catalogue>(caller: Caller, type: Type, changes: Json = {}): Draft =>
  event(type, caller.organization_id, { ...catalogue[type].example, ...changes } as never);

const hidden = (caller: Caller, nth = 1): Draft =>
  example(caller, 'affiliate.hidden', { prospect_id: `fdi_${String(nth).padStart(26, '0')}` });

t.test('sends an event in the envelope and with the headers of the specification, without a cause', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  const endpoint = await caller.post(path, { url: receiver.url });
  t.match(endpoint, { id: /^fwe_/, type: 'live', secret: /^whsec_/, status: 'enabled' });
  await emit(caller, hidden(caller));
  const [received] = (await receiver.until(1)) as [Received];
  t.same(Object.keys(received.body), ['id', 'type', 'version', 'created_at', 'livemode', 'data']);
  t.match(received.body, { id: /^fev_/, type: 'affiliate.hidden', version: 1, livemode: true });
  t.match(received.headers, {
    ...{ 'rail-event': 'affiliate.hidden', 'rail-event-id': received.body.id, 'rail-delivery-id': /^fwd_/ },
    ...{ 'rail-attempt': '1', 'webhook-id': received.body.id, 'user-agent': 'Rail-Webhooks/1.0' },
  });
  t.notOk('rail-request-id' in received.headers);
});

t.test('lists no events, and replays one delivery at a time', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  const { id } = await caller.post(path, { url: receiver.url });
  await emit(caller, hidden(caller));
  await receiver.until(1);
  let log: Json = {};
  await eventually(async () => {
    log = await caller.get(`${path}/${id}/deliveries`);
    return log.data[0]?.status === 'delivered';
  }, 'the log');
  t.match(log.data[0], {
    request_body: receiver.received[0]?.raw,
    attempts: [{ status_code: 200, response_body: 'ok' }],
  });
  const { request_headers } = log.data[0].attempts[0];
  t.equal(log.data[0].attempts[0].url, receiver.url);
  const of_the_connection = ['host', 'connection', 'content-length'];
  t.same(
    Object.keys(request_headers)
      .map((name) => name.toLowerCase())
      .sort(),
    Object.keys(receiver.received[0]?.headers ?? {})
      .filter((name) => !of_the_connection.includes(name))
      .sort(),
  );
  for (const [name, value] of Object.entries(request_headers))
    t.equal(value, receiver.received[0]?.headers[name.toLowerCase()], name);
  const replayed = await caller.post(`/recruitment/v1/webhook_deliveries/${log.data[0].id}/replay`);
  t.match(replayed, { id: /^fwd_/, replay_of: log.data[0].id });
  const [first, second] = (await receiver.until(2)) as [Received, Received];
  t.equal(second.raw, first.raw);
  t.not(second.headers['rail-delivery-id'], first.headers['rail-delivery-id']);
  for (const absent of ['/events', '/webhook_deliveries'])
    t.equal((await caller.request('GET', `/recruitment/v1${absent}`)).status, 404, absent);
  t.equal((await caller.request('POST', `${path}/${id}/replay`, {})).status, 404);
});

t.test('retries within a minute of being due, and not at 1 and 31 minutes past', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver((_, nth) => (nth === 1 ? 500 : 200));
  const { id } = await caller.post(path, { url: receiver.url });
  await emit(caller, hidden(caller));
  const delivery = async () => (await caller.get(`${path}/${id}/deliveries`)).data[0] ?? {};
  await eventually(async () => (await delivery()).attempt === 1, 'the first attempt');
  const { next_attempt_at, attempts } = await delivery();
  t.equal(Date.parse(next_attempt_at) - Date.parse(attempts[0].at), 60_000);
  await rail.tick('webhooks/enqueue_due_retries', next_attempt_at);
  await eventually(
    async () =>
      (await rail.query(sql`select from graphile_worker.jobs where task_identifier = 'webhooks/enqueue_due_retries'`))
        .length === 0,
    'the sweep of the other product',
  );
  t.equal((await delivery()).next_attempt_at, next_attempt_at);
  await rail.tick('webhooks/enqueue_due_retries_each_minute', next_attempt_at);
  await receiver.until(2);
  t.equal(receiver.received[1]?.headers['rail-attempt'], '2');
});

t.test('gives test endpoints the events of tests alone, once and unretried', async (t) => {
  const caller = await rail.organization();
  const [live, test] = [await startReceiver(), await startReceiver(() => 500)];
  await caller.post(path, { url: live.url });
  const { id } = await caller.post(path, { url: test.url, type: 'test' });
  await emit(caller, { ...hidden(caller, 1), livemode: false }, hidden(caller, 2));
  await Promise.all([live.until(1), test.until(1)]);
  t.match(live.received[0]?.body, { id: /^fev_/, livemode: true, data: { prospect_id: /2$/ } });
  t.match(test.received[0]?.body, { id: /^evt_test_/, livemode: false, data: { prospect_id: /1$/ } });
  await eventually(
    async () => (await caller.get(`${path}/${id}/deliveries`)).data[0]?.status === 'failed',
    'the failure',
  );
  t.equal((await caller.get(`${path}/${id}/deliveries`)).total_count, 1);
  t.match(await caller.get(`${path}?type=test`), { total_count: 1, data: [{ id }] });
});

t.test('sends the example of any type as a test event, whatever the type of the endpoint and its filter', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  for (const type of ['live', 'test']) {
    const { id } = await caller.post(path, { url: receiver.url, type, event_types: ['note.added'] });
    await caller.post(`${path}/${id}/ping`, { event_type: 'deal.agreed' });
  }
  for (const { body } of await receiver.until(2)) {
    t.match(body, { id: /^evt_test_/, type: 'deal.agreed', version: 1, livemode: false });
    t.same(body.data, catalogue['deal.agreed'].example);
  }
});

t.test('a test key creates test endpoints alone, works with them, and finds no live one', async (t) => {
  const caller = await rail.organization();
  const tester = await rail.key(caller.organization_id, { mode: 'test' });
  const receiver = await startReceiver();
  const own = await tester.post(path, { url: receiver.url, type: 'live' });
  t.equal(own.type, 'test');
  const live = await caller.post(path, { url: receiver.url });
  const chat = await caller.post(path, { url: `${receiver.url}/T00/B00`, type: 'slack' });
  const others = [await caller.post(`${path}/${live.id}/ping`), await caller.post(`${path}/${chat.id}/ping`)];
  const delivery = await tester.post(`${path}/${own.id}/ping`);
  // Disabling cancels what has not been sent.
  await eventually(async () => receiver.received.length >= 3, 'the test events');
  const called: string[] = [];
  for (const operation of everyOperation()) {
    const { name, method, path: template } = operation;
    called.push(name.replace('recruitment_webhook_', ''));
    const is_of_delivery = template.includes('/webhook_deliveries/');
    const at = (id: string) => template.replace('{id}', id);
    const body = { PATCH: { description: 'Mine' }, POST: {} }[method as string];
    for (const { id } of is_of_delivery ? others : [live, chat]) {
      const refused = await tester.request(method, at(id), body);
      t.match(refused, { status: 404, body: { error: { code: 'resource_not_found' } } }, name);
      t.notMatch(is_of_delivery ? refused.text : '', 'fwe_', 'it names no live endpoint');
    }
    const done = await tester.request(method, at(is_of_delivery ? delivery.id : own.id), body);
    t.equal(done.status, operation.status, `${name} ${done.text}`);
  }
  t.same(called.toSorted(), [
    ...[
      'deliveries.get',
      'deliveries.replay',
      'endpoints.delete',
      'endpoints.deliveries',
      'endpoints.disable',
      'endpoints.enable',
    ],
    ...['endpoints.get', 'endpoints.ping', 'endpoints.rotate_secret', 'endpoints.update'],
  ]);
  t.match(receiver.received.map(({ body }) => body.livemode ?? false).filter(Boolean), [], 'no live event');
  const other = await tester.post(path, { url: receiver.url });
  const ids = async (query: string) => (await tester.get(path + query)).data.map(({ id }: Json) => id);
  t.same(await ids(''), [other.id]);
  t.same(await ids('?type=test'), [other.id]);
  t.same(await ids('?type=live'), []);
  t.equal((await tester.get(path)).total_count, 1);
  const lines = await tester.request('GET', `${path}?format=ndjson`);
  t.equal(lines.text.trim().split('\n').length, 1);
  t.equal((await tester.request('GET', `${path}?of_tests=true`)).status, 400);
  for (const id of [live.id, chat.id]) t.equal((await caller.get(`${path}/${id}`)).status, 'enabled');
});

/** All that is done with one endpoint or delivery. What sends comes before what disables, and what deletes comes last. */
const everyOperation = () => {
  const order = ['disable', 'enable', 'delete'];
  return operations
    .filter(({ scope, path: template }) => scope.startsWith('recruitment_webhooks:') && template.includes('{id}'))
    .map((operation) => ({ operation, at: order.findIndex((last) => operation.name.endsWith(`.${last}`)) }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ operation }) => operation);
};

/** A receiver of a team chat, which answers 429 as long as it is told. */
async function startChat(t: { teardown(end: () => void): void }, busy = 0) {
  const received: { headers: Json; body: Json; url: string }[] = [];
  const server = createServer(async (request, response) => {
    const text = (await Array.fromAsync(request)).join('');
    received.push({ headers: request.headers, body: JSON.parse(text), url: request.url as string });
    if (received.length <= busy) response.writeHead(429, { 'Retry-After': '300' }).end('slow down');
    else response.writeHead(200).end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/T00/B00/sEcReT1234`;
  return { url, received, until: (count: number) => eventually(() => received.length >= count, `${count} messages`) };
}

const card = (text: string) => ({
  type: 'message',
  attachments: [
    {
      contentType: 'application/vnd.microsoft.card.adaptive',
      content: {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        ...{ type: 'AdaptiveCard', version: '1.4', body: [{ type: 'TextBlock', text, wrap: true }] },
      },
    },
  ],
});
const messages: Record<string, (text: string) => Json> = {
  slack: (text) => ({ text, blocks: [{ type: 'section', text: { type: 'mrkdwn', text } }] }),
  discord: (content) => ({ content, allowed_mentions: { parse: [] } }),
  teams: card,
};

t.test('tells team chats in their own form: dedicated texts, a line for other types, no signature', async (t) => {
  const caller = await rail.organization();
  const { prospect_id, campaign_id } = catalogue['reply.received'].example as Json;
  for (const [type, message] of Object.entries(messages)) {
    const chat = await startChat(t);
    const endpoint = await caller.post(path, { url: chat.url, type });
    const { origin } = new URL(chat.url);
    t.match(endpoint, { type, secret: null, url: `${origin}/...1234` });
    await emit(
      caller,
      example(caller, 'reply.received', { reply_kind: 'wrong_person' }),
      example(caller, 'deal.agreed'),
      example(caller, 'search.completed', { found: 1 }),
      example(caller, 'note.added'),
      example(caller, 'reply.received', { campaign_id: null, sequence_id: null }),
    );
    await chat.until(5);
    t.same(
      chat.received.map(({ body }) => body),
      [
        message(`A prospect replied (wrong person): prospect ${prospect_id}, campaign ${campaign_id}`),
        message(`A deal was agreed: ${(catalogue['deal.agreed'].example as Json).deal_id}`),
        message('A search finished: 1 new prospect'),
        message('Event: note.added'),
        message(`A prospect replied (positive): prospect ${prospect_id}`),
      ],
    );
    for (const { headers, url } of chat.received) {
      t.equal(url, '/services/T00/B00/sEcReT1234');
      t.same(
        Object.keys(headers).filter((name) => /rail|webhook|signature/.test(name)),
        [],
      );
    }
    await caller.post(`${path}/${endpoint.id}/ping`, { event_type: 'deal.agreed' });
    await chat.until(6);
    t.match(
      chat.received[5]?.body,
      message(`Test: A deal was agreed: ${(catalogue['deal.agreed'].example as Json).deal_id}`),
    );
    await eventually(async () => {
      const { data } = await caller.get(`${path}/${endpoint.id}/deliveries`);
      return data.length === 6 && data.every(({ status }: Json) => status === 'delivered');
    }, 'the log');
    const { data } = await caller.get(`${path}/${endpoint.id}/deliveries`);
    const logged = data.find((delivery: Json) => delivery.event_type === 'note.added');
    t.same(JSON.parse(logged.request_body), chat.received[3]?.body, 'the log has what was sent');
    await caller.post(`${path}/${endpoint.id}/disable`);
  }
});

t.test("keeps a team chat's address as a secret, changes it, and has no secret of it to rotate", async (t) => {
  const caller = await rail.organization();
  const [before, after] = [await startChat(t), await startChat(t)];
  const { id } = await caller.post(path, { url: before.url, type: 'slack' });
  const [stored] = await rail.query(sql`select to_jsonb(e)::text as row from webhooks.endpoint e where e.id = ${id}`);
  t.notMatch(stored?.row, 'sEcReT');
  t.match(await caller.request('POST', `${path}/${id}/rotate_secret`), {
    status: 409,
    body: { error: { code: 'invalid_state_transition' } },
  });
  const changed = await caller.patch(`${path}/${id}`, { url: `${after.url}5678` });
  t.match(changed.url, /\.\.\.5678$/);
  await emit(caller, hidden(caller));
  await after.until(1);
  t.equal(after.received[0]?.url, '/services/T00/B00/sEcReT12345678');
  t.equal(before.received.length, 0);
});

t.test('waits as long as a team chat asks for that answers 429', async (t) => {
  const caller = await rail.organization();
  const chat = await startChat(t, 1);
  const { id } = await caller.post(path, { url: chat.url, type: 'discord' });
  await emit(caller, hidden(caller));
  const delivery = async () => (await caller.get(`${path}/${id}/deliveries`)).data[0] ?? {};
  await eventually(async () => (await delivery()).attempt === 1, 'the attempt');
  const { next_attempt_at, attempts } = await delivery();
  t.match(attempts, [{ status_code: 429, response_body: 'slow down' }]);
  t.same(Object.keys(attempts[0].request_headers), ['Content-Type', 'User-Agent']);
  t.match(attempts[0].url, /\.\.\.1234$/);
  t.equal(Date.parse(next_attempt_at) - Date.parse(attempts[0].at), 300_000);
  await rail.tick('webhooks/enqueue_due_retries_each_minute', next_attempt_at);
  await chat.until(2);
});

t.test('takes addresses of the tools themselves, and of hosts that the operator allows', async (t) => {
  const chat_hosts = ['chat.example.com'];
  const taken = (type: string, url: string) => isChatAddress(type, new URL(url), { chat_hosts });
  for (const [type, url] of [
    ['slack', 'https://hooks.slack.com/services/T/B/x'],
    ['discord', 'https://discord.com/api/webhooks/1/x'],
    ['discord', 'https://discordapp.com/api/webhooks/1/x'],
    ['teams', 'https://prod-12.westus.logic.azure.com:443/workflows/x'],
    ['teams', 'https://default.5f.environment.api.powerplatform.com/x'],
    ['teams', 'https://acme.webhook.office.com/webhookb2/x'],
    ...['slack', 'discord', 'teams'].map((any) => [any, 'https://chat.example.com/hooks/x']),
  ] as [string, string][])
    t.ok(taken(type, url), `${type} ${url}`);
  for (const [type, url] of [
    ['slack', 'https://hooks.slack.com.example.com/services/T/B/x'],
    ['slack', 'https://discord.com/api/webhooks/1/x'],
    ['discord', 'https://discord.com/channels/1'],
    ['teams', 'https://logic.azure.com.example.com/x'],
    ['teams', 'https://evil-webhook.office.com/x'],
  ] as [string, string][])
    t.notOk(taken(type, url), `${type} ${url}`);
  const caller = await rail.organization();
  t.match(await caller.request('POST', path, { type: 'slack', url: 'https://hooks.example.com/services/x' }), {
    status: 400,
    body: { error: { code: 'address_not_allowed', param: 'url' } },
  });
});

t.test('understands Retry-After in seconds and as a date, up to a day', async (t) => {
  t.equal(retryAfterOf('120'), 120);
  t.equal(retryAfterOf('0.4'), 1);
  t.equal(retryAfterOf('999999999'), 86_400);
  const now = Date.parse('2026-11-22T12:00:00Z');
  t.equal(retryAfterOf(new Date(now + 600_000).toUTCString(), now), 600);
  for (const none of [undefined, '', '-5', 'soon', new Date(0).toUTCString()]) t.equal(retryAfterOf(none), undefined);
});

t.test("never changes an endpoint's type", async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  const { id } = await caller.post(path, { url: receiver.url });
  t.match(await caller.request('PATCH', `${path}/${id}`, { type: 'test' }), {
    status: 400,
    body: { error: { code: 'unknown_parameter' } },
  });
});

t.test('keeps test events as long as others', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(path, { url: receiver.url, type: 'test' });
  await emit(caller, { ...hidden(caller, 1), livemode: false }, { ...hidden(caller, 2), livemode: false });
  const [old, young] = (await receiver.until(2)).map(({ body }) => body.id);
  const pending = sql`select from webhooks.delivery where event_id in (${old}, ${young}) and status <> 'delivered'`;
  await eventually(async () => (await rail.query(pending)).length === 0, 'both deliveries as delivered');
  await rail.query(sql`update webhooks.event set created_at = now() - interval '31 days' where id = ${old}`);
  await rail.query(sql`call webhooks.keep_partitions(now(), 'fev', 'fwd')`);
  const kept = await rail.query<{ id: string }>(sql`select id from webhooks.event where id in (${old}, ${young})`);
  t.same(kept, [{ id: young }]);
});
