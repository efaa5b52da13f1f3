import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';

const rail = await startRail();
const minute = 60;
const hour = 3_600;
/** "Attempt 2 after 1 minute, 3 after 5 minutes, 4 after 30 minutes, 5 after 2 hours, 6 after 12 hours, 7 and 8 after 24 hours." */
const waits_s = [minute, 5 * minute, 30 * minute, 2 * hour, 12 * hour, 24 * hour, 24 * hour];

t.test(
  'retries a failed delivery up to the eighth attempt, each after its wait, and then marks it failed',
  async (t) => {
    const receiver = await startReceiver(() => 500);
    const shop = await openShop(receiver.url);
    await shop.sell();
    for (const [nth, wait_s] of waits_s.entries()) {
      await receiver.until(nth + 1);
      const delivery = await shop.delivery((each) => each.attempt === nth + 1);
      t.equal(delivery.status, 'pending');
      const attempts = await shop.attempts(delivery.id);
      const previous = Date.parse(attempts.at(-1)?.at);
      t.equal(Date.parse(delivery.next_attempt_at) - previous, wait_s * 1_000, `attempt ${nth + 2} waits ${wait_s} s`);
      await rail.tick('webhooks/enqueue_due_retries', new Date(previous + wait_s * 1_000 - 1).toISOString());
      await quiet('webhooks/enqueue_due_retries');
      t.same(
        await shop.delivery((each) => each.id === delivery.id),
        delivery,
        'a sweep that comes too early leaves it',
      );
      await rail.tick('webhooks/enqueue_due_retries', delivery.next_attempt_at);
    }
    await receiver.until(8);
    const { id, ...failed } = await shop.delivery(({ attempt }) => attempt === 8);
    t.match(failed, { status: 'failed', attempt: 8, next_attempt_at: null });
    t.same(
      receiver.received.map(({ headers }) => headers['rail-attempt']),
      ['1', '2', '3', '4', '5', '6', '7', '8'],
    );
    t.equal(new Set(receiver.received.map(({ headers }) => headers['rail-delivery-id'])).size, 1);
    t.equal(new Set(receiver.received.map(({ raw }) => raw)).size, 1, 'the body is the same each time');
    t.same(
      (await shop.attempts(id)).map(({ attempt, status_code, response_body, error }) => [
        attempt,
        status_code,
        response_body,
        error,
      ]),
      Array.from({ length: 8 }, (_, nth) => [nth + 1, 500, 'ok', 'The endpoint answered 500.']),
    );
  },
);

t.test('moves a failed event later, where it holds up nothing', async (t) => {
  const refused = new Set<string>();
  const receiver = await startReceiver(({ body }) => {
    if (body.data.external_charge_id !== 'ch_1' || refused.has(body.id)) return 204;
    refused.add(body.id);
    return 503;
  });
  const shop = await openShop(receiver.url);
  await shop.sell();
  const delivery = await shop.delivery(({ attempt }) => attempt === 1);
  await shop.sell();
  await shop.sell();
  await receiver.until(3);
  await rail.tick('webhooks/enqueue_due_retries', delivery.next_attempt_at);
  await receiver.until(4);
  await shop.sell();
  await receiver.until(5);
  t.same(
    receiver.received.map(({ body }) => body.data.external_charge_id),
    ['ch_1', 'ch_2', 'ch_3', 'ch_1', 'ch_4'],
  );
  await shop.delivery(({ id, status, attempt }) => id === delivery.id && status === 'delivered' && attempt === 2);
});

t.test('takes any 2xx within ten seconds, and nothing else', async (t) => {
  const target = await startReceiver();
  const answers: ((response: ServerResponse) => unknown)[] = [
    (response) => response.writeHead(200).end(),
    (response) => response.writeHead(202).end('accepted'),
    (response) => response.writeHead(299).end(),
    (response) => response.writeHead(301, { Location: target.url }).end(),
    (response) => response.writeHead(307, { Location: target.url }).end(),
    (response) => response.writeHead(404).end(),
    (response) => response.writeHead(200).end('x'.repeat(20_000)),
    (response) => response.writeHead(200).end('a\0b'),
    (response) => response.destroy(),
    (response) => response.writeHead(200).write('a body that never ends'),
    (response) => response.writeHead(200).end('the next'),
  ];
  const receiver = await startServer(t, (_, response, nth) => answers[nth]?.(response));
  const hanging = await startServer(t, () => 'no answer');
  const [shop, other_shop] = await Promise.all([openShop(receiver.url), openShop(hanging.url)]);
  await other_shop.sell();
  for (const _ of answers) await shop.sell();
  const attempted = async () => (await shop.deliveries()).filter(({ attempt }) => attempt === 1);
  await eventually(async () => (await attempted()).length === answers.length, 'all attempts');
  await other_shop.delivery(({ attempt }) => attempt === 1);

  const results = [...(await shop.log()), ...(await other_shop.log())];
  const late = 'No complete response within 10 seconds.';
  const broken = 'The connection failed or was closed before the response was complete.';
  t.same(
    results.map(({ status, status_code, error }) => [status, status_code, error]),
    [
      ['delivered', 200, null],
      ['delivered', 202, null],
      ['delivered', 299, null],
      ['pending', 301, 'The endpoint answered 301.'],
      ['pending', 307, 'The endpoint answered 307.'],
      ['pending', 404, 'The endpoint answered 404.'],
      ['delivered', 200, null],
      ['delivered', 200, null],
      ['pending', null, broken],
      ['delivered', 200, null],
      ['delivered', 200, null],
      ['pending', null, late],
    ],
  );
  t.equal(target.received.length, 0, 'redirects are not followed');
  t.equal(results[6]?.response_body, 'x'.repeat(16_384), 'a long response is cut');
  t.equal(results[7]?.response_body, 'a\uFFFDb');
  t.equal(results[9]?.response_body, 'a body that never ends', 'a slow body is kept as far as it came');
});

t.test('keeps the order of the queue while many sell at once', async (t) => {
  let at_once = 0;
  let most_at_once = 0;
  const receiver = await startReceiver(async () => {
    most_at_once = Math.max(most_at_once, ++at_once);
    await sleep(1);
    at_once--;
    return 200;
  });
  const shop = await openShop(receiver.url);
  await Promise.all(Array.from({ length: 100 }, () => shop.sell()));
  await receiver.until(100);
  await eventually(async () => (await shop.deliveries()).every(({ status }) => status === 'delivered'), 'the log');
  t.equal(most_at_once, 1);
  t.same(
    receiver.received.map(({ body }) => body.id),
    (await shop.deliveries()).map(({ event_id }) => event_id),
  );
});

t.test('sends nothing more to an endpoint that was deleted, and cancels what waited', async (t) => {
  const receiver = await startReceiver(async (_, nth) => {
    if (nth > 1) return 200;
    await Promise.all([shop.sell(), shop.sell()]);
    await eventually(async () => (await shop.deliveries()).length === 3, 'all to be queued');
    await shop.merchant.delete(`/v1/webhook_endpoints/${shop.endpoint_id}`);
    return 200;
  });
  const shop = await openShop(receiver.url);
  await shop.sell();
  await receiver.until(1);
  await eventually(async () => {
    const all = await shop.deliveries();
    return all.length === 3 && all.every(({ status }) => status !== 'pending');
  }, 'the end of the queue');
  t.same(
    (await shop.deliveries()).map(({ status }) => status),
    ['delivered', 'cancelled', 'cancelled'],
  );
  await shop.sell();
  await eventually(async () => (await rail.query(sql`select from webhooks.pending_event`)).length === 0, 'the fan-out');
  t.equal((await shop.deliveries()).length, 3, 'later events are not enqueued');
  t.equal(receiver.received.length, 1);
});

for (const [when, change] of [
  ['is disabled', ['disable']],
  ['was disabled meanwhile, and is enabled again', ['disable', 'enable']],
] as const)
  t.test(`cancels the retry of an endpoint that ${when}`, async (t) => {
    const receiver = await startReceiver(() => 500);
    const shop = await openShop(receiver.url);
    await shop.sell();
    const { id, next_attempt_at } = await shop.delivery(({ attempt }) => attempt === 1);
    for (const each of change) await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint_id}/${each}`);
    await rail.tick('webhooks/enqueue_due_retries', next_attempt_at);
    await shop.delivery((each) => each.id === id && each.status === 'cancelled' && each.attempt === 1);
    t.equal(receiver.received.length, 1);
    if (change.length === 1) return;

    await shop.sell();
    await shop.delivery((each) => each.id !== id && each.attempt === 1);
    await rail.tick('webhooks/enqueue_due_retries', next_attempt_at);
    t.equal(receiver.received.length, 2, 'only what happened since');
  });

t.test('counts no attempt for a fault of ours, and goes on when it is mended', async (t) => {
  const receiver = await startReceiver();
  const shop = await openShop(receiver.url);
  const [sealed] = await rail.query(sql`select secret from webhooks.endpoint where id = ${shop.endpoint_id}`);
  await rail.query(sql`update webhooks.endpoint set secret = '\\x00' where id = ${shop.endpoint_id}`);
  await shop.sell();
  const queue = async () =>
    (await rail.query(sql`select * from webhooks.endpoint_queue where endpoint_id = ${shop.endpoint_id}`))[0] as Json;
  await eventually(async () => (await queue()).lease_token === 1, 'the first try');
  await quiet('webhooks/deliver');
  t.equal((await queue()).lease_token, 1, 'it does not try over and over');
  t.ok((await queue()).lease_until, 'but when its lease has run out');
  t.match(await shop.delivery(() => true), { status: 'pending', attempt: 0 });

  await rail.query(sql`update webhooks.endpoint set secret = ${sealed?.secret} where id = ${shop.endpoint_id}`);
  await rail.query(sql`update webhooks.endpoint_queue set lease_until = now() where endpoint_id = ${shop.endpoint_id}`);
  await receiver.until(1);
  await shop.delivery(({ status, attempt }) => status === 'delivered' && attempt === 1);
});

t.test('passes over a delivery whose event was dropped with its week', async () => {
  const receiver = await startReceiver(({ body }) => (body.data.external_charge_id === 'ch_1' ? 500 : 200));
  const shop = await openShop(receiver.url);
  await shop.sell();
  const { id, event_id, next_attempt_at } = await shop.delivery(({ attempt }) => attempt === 1);
  await rail.query(sql`delete from webhooks.event where id = ${event_id}`);
  await rail.tick('webhooks/enqueue_due_retries', next_attempt_at);
  await shop.delivery((each) => each.id === id && each.status === 'cancelled');
  await shop.sell();
  await receiver.until(2);
});

t.test('wakes an endpoint whose wake-up was lost', async (t) => {
  const receiver = await startReceiver();
  const shop = await openShop(receiver.url);
  await rail.query(sql`
    with event as (
      insert into webhooks.event (organization_id, id, position, program_id, type, body, created_at)
      values (${shop.merchant.organization_id}, core.new_id('evt'), nextval('webhooks.event_position'), ${shop.program_id}, 'sale.created', '{"id": "evt_lost"}', now())
      returning organization_id, id, program_id, type
    ),
    added as (
      insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, queue_position)
      select organization_id, core.new_id('whd'), program_id, ${shop.endpoint_id}, id, type, nextval('webhooks.queue_position') from event
      returning endpoint_id, queue_position, organization_id, id, event_id, event_type
    )
    insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type)
    select endpoint_id, queue_position, organization_id, id, event_id, event_type from added`);
  await receiver.until(1);
  t.equal(receiver.received[0]?.body.id, 'evt_lost');
});

interface Shop {
  merchant: Caller;
  program_id: string;
  endpoint_id: string;
  /** Makes one event, `sale.created`, of the charges ch_1, ch_2, … */
  sell(): Promise<void>;
  /** In the order of the queue. */
  deliveries(): Promise<Json[]>;
  /** Waits for the one that fits. */
  delivery(fits: (delivery: Json) => boolean): Promise<Json>;
  attempts(delivery_id: string): Promise<Json[]>;
  /** Deliveries with their only attempts, in the order of the sales. */
  log(): Promise<Json[]>;
}

async function openShop(url: string): Promise<Shop> {
  const merchant = await rail.organization();
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  const endpoint = { program_id, url, event_types: ['sale.created'] };
  const { id: endpoint_id } = await merchant.post('/v1/webhook_endpoints', endpoint);
  const partner = await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  let sales = 0;
  const deliveries = () =>
    rail.query(sql`
      select id, event_id, queue_position, status, attempt, next_attempt_at from webhooks.delivery where endpoint_id = ${endpoint_id} order by queue_position`);
  return {
    merchant,
    program_id,
    endpoint_id,
    async sell() {
      const external_charge_id = `ch_${++sales}`;
      const sale = { program_id, partner_id: partner.id, amount_minor: 100, currency: 'USD', external_charge_id };
      await merchant.post('/v1/sales', sale);
    },
    deliveries,
    async delivery(fits) {
      let found: Json | undefined;
      await eventually(async () => {
        found = (await deliveries()).find(fits);
        return found !== undefined;
      }, 'the delivery');
      return found as Json;
    },
    attempts: (delivery_id) =>
      rail.query(sql`
        select attempt, at, status_code, response_body, error from webhooks.attempt where delivery_id = ${delivery_id} order by attempt`),
    log: () =>
      rail.query(sql`
        select d.status, a.status_code, a.response_body, a.error
        from webhooks.delivery d
        join webhooks.attempt a on a.organization_id = d.organization_id and a.delivery_id = d.id
        where d.endpoint_id = ${endpoint_id}
        order by d.queue_position`),
  };
}

/** Waits until no job of this kind is left. */
function quiet(task: string): Promise<void> {
  const left = sql`select 1 from graphile_worker.jobs where task_identifier = ${task} and run_at <= now()`;
  return eventually(async () => (await rail.query(left)).length === 0, `the jobs of ${task} to end`);
}

/** A receiver that answers as it likes, the nth event the same way each time. */
async function startServer(
  t: { teardown(work: () => unknown): void },
  answer: (request: IncomingMessage, response: ServerResponse, nth: number) => unknown,
): Promise<{ url: string }> {
  const events: unknown[] = [];
  const server = createServer((request, response) => {
    const event = request.headers['rail-event-id'];
    if (!events.includes(event)) events.push(event);
    request.resume().on('end', () => answer(request, response, events.indexOf(event)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}
