/** Checks that an event, its deliveries and their attempts touch as many blocks behind 5,000 others of the endpoint as at first. */
import t from 'tap';
import { createPinnedAgent } from '../../src/core/net/agent.ts';
import type { Tx } from '../../src/core/postgres/transaction.ts';
import { switch_off } from '../../src/webhooks/endpoints/switch_off.ts';
import { Deliverer } from '../../src/webhooks/queue/deliverer.ts';
import { enqueueDueRetries } from '../../src/webhooks/queue/due_retries.ts';
import { type Json, log, sql, startRail, startReceiver } from '../harness.ts';
import { openShop } from '../shop.ts';
import { many, more, openVolume } from '../volume.ts';

// The rows are written past the requests.
const rail = await startRail({ worker: false, audit: false });
const tables = ['event', 'pending_event', 'delivery', 'queued_delivery', 'attempt', 'endpoint_queue'];
const volume = await openVolume(
  rail,
  tables.map((table) => `webhooks.${table}`),
);
let answer = 200;
const receiver = await startReceiver(() => answer);
const agent = createPinnedAgent({ allowPrivate: true, ownHosts: [] });
t.teardown(() => agent.destroy());
const never = new AbortController().signal;
const deliverer = new Deliverer({
  ...{ store: rail.store, services: rail.services, log, slots: 4, agent: async () => agent },
  ...{ worker_id: 'wrk_test', stopping: never, cut_off: never },
});

/** A shop whose endpoint has taken an event. */
async function openListener() {
  const shop = await openShop(rail);
  const endpoint = await shop.endpoint(receiver.url, { event_types: ['affiliate.created'] });
  await shop.partner();
  await deliver(endpoint);
  const deliveries = `/v1/webhook_endpoints/${endpoint.id}/deliveries`;
  const [delivery] = (await shop.merchant.get(deliveries)).data;
  const postback = await shop.endpoint(receiver.url, { partner_id: (await shop.partner()).id });
  return { shop, endpoint, delivery, postback };
}

/** Appends what happened to the queue of an endpoint, and sends what that holds. */
async function deliver({ id }: Json): Promise<void> {
  await rail.query(sql`select taken from webhooks.fan_out(1000)`);
  await deliverer.deliver(id);
}

/** Puts so many events, deliveries and postbacks behind the first ones: a third have arrived, a third have failed, a third will be tried again. */
async function fill(
  { shop, delivery, postback }: Awaited<ReturnType<typeof openListener>>,
  count = many,
): Promise<void> {
  const { organization_id } = shop.merchant;
  const copies = { organization_id, count };
  await volume.copy(
    copies,
    'webhooks.event',
    { id: delivery.event_id },
    { position: `nextval('webhooks.event_position')` },
  );
  await volume.copy(copies, 'webhooks.delivery', delivery, {
    ...{ queue_position: `nextval('webhooks.queue_position')`, attempt: '1' },
    ...{ status: `(array['delivered', 'failed', 'pending'])[1 + n % 3]` },
    next_attempt_at: `case when n % 3 = 2 then now() + interval '1 day' end`,
  });
  await rail.query(sql`
    insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms, status_code)
    select d.organization_id, d.id, 1, now(), 1, 500 from webhooks.delivery d
    where d.organization_id = ${organization_id}
    on conflict do nothing`);
  await volume.copy(copies, 'webhooks.endpoint', postback);
  await rail.query(sql`analyze`);
}

// Another merchant's objects make the indexes as deep as they are behind the others.
await fill(await openListener(), 1_000);
const listener = await openListener();
const { shop, endpoint, delivery } = listener;
await rail.query(sql`analyze`);

/** Has something happen, and sends it to the endpoint, which answers with this status. */
async function happen(status: number): Promise<void> {
  answer = status;
  await shop.partner();
  await deliver(endpoint);
}
const creates: Record<string, () => Promise<unknown>> = {
  'an event that arrives': () => happen(200),
  'an event that is to be tried again': () => happen(500),
  'an event that is tried again': async () => {
    await happen(500);
    answer = 200;
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    await enqueueDueRetries(rail.store.database, soon, ['whd']);
    await deliverer.deliver(endpoint.id);
  },
  'an event that is sent once more': async () => {
    answer = 200;
    await shop.merchant.post(`/v1/webhook_deliveries/${delivery.id}/replay`);
    await deliver(endpoint);
  },
  'a test event': async () => {
    await shop.merchant.post(`/v1/webhook_endpoints/${endpoint.id}/ping`);
    await deliver(endpoint);
  },
};
await volume.compare(creates, () => fill(listener));

t.test(`a failure looks at no more behind ${many} that followed one another`, async (t) => {
  const { organization_id } = shop.merchant;
  const failed = { queue_position: `nextval('webhooks.queue_position')`, attempt: '8', status: `'failed'` };
  const { least_failures, within_days, span_days } = switch_off;
  const check = (tx: Tx) =>
    tx.all(sql`
      select from webhooks.dead_endpoint(${endpoint.id}, ${tx.now}::timestamptz, ${least_failures}, make_interval(days => ${within_days}),
        make_interval(days => ${span_days}))`);
  await volume.copy({ organization_id, count: 1 }, 'webhooks.delivery', delivery, failed);
  const before = await volume.checked(null, check);
  await volume.copy({ organization_id }, 'webhooks.delivery', delivery, failed);
  await rail.query(sql`analyze webhooks.delivery`);
  const now = await volume.checked(null, check);
  t.comment(`${before}, ${now}`);
  t.ok(before > 1, 'something is measured');
  t.ok(now <= before + more, `${before} at first, ${now} then`);
});
