import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { catalogue } from '../../../src/program/events/catalogue.ts';
import { replayNext } from '../../../src/webhooks/deliveries/replay.ts';
import { type Answer, type Caller, eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';

const rail = await startRail();

interface Shop {
  merchant: Caller;
  program_id: string;
  endpoint: Json;
  /** Makes one event and gives the email that it names. */
  happen(): Promise<string>;
  log(query?: string): Promise<Json[]>;
}

async function openShop(url: string): Promise<Shop> {
  const merchant = await rail.organization();
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  const endpoint = await merchant.post('/v1/webhook_endpoints', {
    program_id,
    url,
    event_types: ['affiliate.created'],
  });
  let nth = 0;
  return {
    merchant,
    program_id,
    endpoint,
    async happen() {
      const email = `partner${++nth}@example.com`;
      await merchant.post('/v1/partners', { program_id, email });
      return email;
    },
    log: async (query = '') =>
      (await merchant.get(`/v1/webhook_endpoints/${endpoint.id}/deliveries?limit=100${query}`)).data.reverse(),
  };
}

t.test('the log shows the exact body, and what each attempt was answered', async (t) => {
  const receiver = await startReceiver();
  const { merchant, program_id, endpoint, happen, log } = await openShop(receiver.url);
  await happen();
  const [received] = await receiver.until(1);
  await eventually(async () => (await log('&status=delivered')).length === 1, 'the attempt to be written');
  const [delivery] = (await log()) as [Json];
  t.match(delivery, {
    object: 'webhook_delivery',
    endpoint_id: endpoint.id,
    event_id: received?.body.id,
    event_type: 'affiliate.created',
    status: 'delivered',
    attempt: 1,
    replay_of: null,
    request_body: received?.raw,
    attempts: [{ attempt: 1, status_code: 200, response_body: 'ok', error: null, url: receiver.url }],
  });
  const of_the_connection = ['host', 'connection', 'content-length'];
  const sent = Object.entries(received?.headers ?? {}).filter(([name]) => !of_the_connection.includes(name));
  const logged = Object.entries(delivery.attempts[0].request_headers).map(([name, value]) => [
    name.toLowerCase(),
    value,
  ]);
  t.same(Object.fromEntries(logged), Object.fromEntries(sent));
  t.match(Object.fromEntries(logged), { 'rail-signature': /^t=/, 'rail-request-id': /^req_/ });
  t.same(await merchant.get(`/v1/webhook_deliveries/${delivery.id}`), delivery);
  const all = await merchant.get(`/v1/webhook_deliveries?program_id=${program_id}&event_type=affiliate.created`);
  t.same(all.data, [delivery]);
  t.equal((await merchant.get(`/v1/webhook_deliveries?program_id=${program_id}&status=failed`)).total_count, 0);
});

t.test('the log refuses a cursor of another endpoint, and a type that is none', async (t) => {
  const receiver = await startReceiver();
  const { merchant, program_id, endpoint, happen, log } = await openShop(receiver.url);
  const other = await merchant.post('/v1/webhook_endpoints', { program_id, url: receiver.url });
  await happen();
  await receiver.until(2);
  const [own] = await log();
  const [foreign] = (await merchant.get(`/v1/webhook_endpoints/${other.id}/deliveries`)).data;
  const paths = [`/v1/webhook_deliveries?program_id=${program_id}`, `/v1/webhook_endpoints/${endpoint.id}/deliveries?`];
  const errorOf = async (path: string) => (await merchant.request('GET', path)).body.error;
  t.match(await errorOf(`${paths[1]}&starting_after=${foreign.id}`), {
    code: 'invalid_cursor',
    param: 'starting_after',
  });
  t.equal(await errorOf(`${paths[1]}&starting_after=${own?.id}`), undefined);
  t.equal(await errorOf(`${paths[0]}&starting_after=${foreign.id}&endpoint_id=${endpoint.id}`), undefined);
  for (const path of paths) {
    t.match(await errorOf(`${path}&event_type=foo`), { code: 'invalid_parameter', param: 'event_type' });
    t.equal(await errorOf(`${path}&event_type=affiliate.created&status=delivered`), undefined);
  }
});

t.test('a replay is a new delivery of the same event and body, and the old entry is unchanged', async (t) => {
  const receiver = await startReceiver();
  const { merchant, happen, log } = await openShop(receiver.url);
  await happen();
  await receiver.until(1);
  await eventually(async () => (await log('&status=delivered')).length === 1, 'the first delivery');
  const [before] = (await log()) as [Json];
  const answer: Answer = await merchant.request('POST', `/v1/webhook_deliveries/${before.id}/replay`);
  t.equal(answer.status, 202);
  t.match(answer.body, {
    replay_of: before.id,
    event_id: before.event_id,
    status: 'pending',
    request_body: before.request_body,
  });
  const [first, second] = await receiver.until(2);
  t.equal(second?.raw, first?.raw);
  t.equal(second?.headers['rail-event-id'], first?.headers['rail-event-id']);
  t.equal(second?.headers['rail-delivery-id'], answer.body.id);
  t.equal(second?.headers['rail-attempt'], '1');
  t.same((await log())[0], before);
});

t.test('everything that failed since a point in time is replayed, in the order in which it happened', async (t) => {
  let broken = true;
  const receiver = await startReceiver(() => (broken ? 500 : 200));
  const { merchant, endpoint, happen, log } = await openShop(receiver.url);
  const since = new Date().toISOString();
  const emails = [await happen(), await happen(), await happen()];
  await receiver.until(3);
  await eventually(async () => (await log()).every(({ attempt }) => attempt === 1), 'the first attempts');
  for (let attempt = 2; attempt <= 8; attempt++) {
    await rail.tick('webhooks/enqueue_due_retries', new Date(Date.now() + attempt * 86_400_000).toISOString());
    await eventually(async () => (await log()).every((delivery) => delivery.attempt === attempt), `attempt ${attempt}`);
  }
  t.ok((await log()).every(({ status, next_attempt_at }) => status === 'failed' && next_attempt_at === null));
  broken = false;
  const answer = await merchant.request('POST', `/v1/webhook_endpoints/${endpoint.id}/replay`, { failed_since: since });
  t.equal(answer.status, 202);
  const received = await receiver.until(27);
  t.same(
    received.slice(24).map(({ body }) => body.data.email),
    emails,
  );
  await eventually(async () => (await log('&status=delivered')).length === 3, 'the replays to be written');
  t.equal((await log('&status=failed')).length, 3, 'the old entries stay');
});

t.test('a replay of what is yet to come is refused by the name of the field that says so', async (t) => {
  const { merchant, endpoint } = await openShop('http://127.0.0.1:9/');
  const [soon, later] = [3_600_000, 7_200_000].map((ms) => new Date(Date.now() + ms).toISOString());
  for (const [body, param] of [
    [{ failed_since: soon }, 'failed_since'],
    [{ from: soon, to: later }, 'from'],
    [{ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'to'],
  ] as const) {
    const refused = await merchant.request('POST', `/v1/webhook_endpoints/${endpoint.id}/replay`, body);
    t.match(refused, { status: 400, body: { error: { code: 'invalid_parameter', param } } });
  }
});

t.test('a window is replayed whole, in the order in which it happened, once', async (t) => {
  const receiver = await startReceiver();
  const { merchant, endpoint, program_id, happen } = await openShop(receiver.url);
  const from = new Date(Date.now() - 1_000).toISOString();
  const emails: string[] = [];
  for (let nth = 0; nth < 20; nth++) emails.push(await happen());
  await receiver.until(20);
  const to = new Date(Date.now() + 60_000).toISOString();
  const path = `/v1/webhook_endpoints/${endpoint.id}/replay`;
  t.equal((await merchant.request('POST', path, { from, to })).status, 202);
  const received = await receiver.until(40);
  t.same(
    received.slice(20).map(({ body }) => body.data.email),
    emails,
  );
  t.equal((await merchant.get(`/v1/webhook_deliveries?program_id=${program_id}`)).total_count, 40);
});

t.test('a replay that is longer than a batch goes on in the next job, and leaves out nothing', async (t) => {
  const receiver = await startReceiver();
  const { merchant, endpoint, happen } = await openShop(receiver.url);
  const from = new Date(Date.now() - 1_000).toISOString();
  const emails: string[] = [];
  for (let nth = 0; nth < 10; nth++) emails.push(await happen());
  await receiver.until(10);
  const replay = { endpoint_id: endpoint.id, from, to: new Date(Date.now() + 60_000).toISOString() };
  const opening = { organization_id: merchant.organization_id, request_id: null };
  await transaction(rail.store, opening, (tx) =>
    replayNext(tx, { ...replay, failed_only: false, after_position: 0, key: 'replay:1' }, 5),
  );
  const received = await receiver.until(20);
  t.same(
    received.slice(10).map(({ body }) => body.data.email),
    emails,
  );
});

t.test('a replay says what it needs', async (t) => {
  const { merchant, endpoint } = await openShop('http://127.0.0.1:9/');
  const path = `/v1/webhook_endpoints/${endpoint.id}/replay`;
  const day = 86_400_000;
  const ago = (days: number) => new Date(Date.now() - days * day).toISOString();
  for (const [body, param] of [
    [{}, 'from'],
    [{ from: ago(1) }, 'to'],
    [{ from: ago(1), to: ago(2) }, 'to'],
    [{ from: ago(31), to: ago(0.5) }, 'from'],
    [{ failed_since: ago(31) }, 'failed_since'],
    [{ failed_since: ago(1), to: ago(0) }, 'failed_since'],
    [{ failed_since: '2026-11-21T09:30:00Z', from: '2026-11-21T09:30:00Z' }, 'failed_since'],
  ] as const) {
    const answer = await merchant.request('POST', path, body);
    t.equal(answer.status, 400, JSON.stringify(body));
    t.equal(answer.body.error.param, param, JSON.stringify(body));
  }
  await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/disable`);
  const answer = await merchant.request('POST', path, { failed_since: ago(1) });
  t.match(answer, { status: 409, body: { error: { code: 'endpoint_disabled' } } });
});

t.test('a ping sends the catalogue’s example, signed, once, and is not retried', async (t) => {
  const receiver = await startReceiver(() => 500);
  const { merchant, endpoint, log } = await openShop(receiver.url);
  const sent = await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/ping`, { event_type: 'sale.created' });
  const [received] = await receiver.until(1);
  t.match(received?.body.id, /^evt_test_/);
  t.same(received?.body.data, catalogue['sale.created'].example);
  t.notOk('request' in (received?.body ?? {}));
  t.same(new Webhook(endpoint.secret).verify(received?.raw ?? '', received?.headers ?? {}), received?.body);
  await eventually(async () => (await log('&status=failed')).length === 1, 'the result of the ping');
  t.match(await merchant.get(`/v1/webhook_deliveries/${sent.id}`), {
    attempt: 1,
    status: 'failed',
    next_attempt_at: null,
  });
  const { event_type } = await merchant.post(`/v1/webhook_endpoints/${endpoint.id}/ping`);
  t.equal(event_type, 'affiliate.created', 'of the types that it chose, when none is named');
});

t.test('wakes a slow endpoint by the jobs of the slow ones', async (t) => {
  const receiver = await startReceiver(async (_, nth) => {
    if (nth === 1) await sleep(1_100);
    return 200;
  });
  const { merchant, endpoint, happen, log } = await openShop(receiver.url);
  await happen();
  await eventually(async () => (await log('&status=delivered')).length === 1, 'the attempt to be written');
  await rail.query(sql`create table public.enqueued_task (identifier text not null, endpoint_id text)`);
  await rail.query(sql`
    create function public.note_task() returns trigger language plpgsql as $$
    begin
      insert into public.enqueued_task
      select t.identifier, new.payload ->> 'endpoint_id' from graphile_worker._private_tasks t where t.id = new.task_id;
      return null;
    end $$`);
  await rail.query(sql`
    create trigger note_task after insert on graphile_worker._private_jobs for each row execute function public.note_task()`);
  const [delivery] = (await log()) as [Json];
  await merchant.post(`/v1/webhook_deliveries/${delivery.id}/replay`);
  await receiver.until(2);
  // The sweep wakes it too when it looks between a worker's taking the job and taking the lease.
  t.same(
    await rail.query(sql`select distinct identifier from public.enqueued_task where endpoint_id = ${endpoint.id}`),
    [{ identifier: 'webhooks/deliver_slow' }],
  );
  await eventually(async () => (await log('&status=delivered')).length === 2, 'the replay to be written');
  t.equal(receiver.received.length, 2, 'however often it was woken');
});
