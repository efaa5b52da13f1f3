import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { type Caller, eventually, type Json, type Received, sql, startRail, startReceiver } from '../../harness.ts';
import { holdQueue } from './held_queue.ts';

const rail = await startRail();
// While nothing else runs: a trigger locks the attempts' partitions in another order than those who write them.
await rail.query(sql`create sequence public.written`);
await rail.query(sql`create function public.fail_once() returns trigger language plpgsql as 'begin return new; end'`);
await rail.query(
  sql`create trigger fail_once before insert on webhooks.attempt for each row execute function public.fail_once()`,
);

t.test('sends again what could not be written, though what came after it was', async (t) => {
  const receiver = await startReceiver();
  const shop = await openShop(receiver.url);
  await shop.sell(4);
  await failOnce('P0001');
  await shop.release();
  await receiver.until(4);
  // Its lease would run out by itself.
  const [queue] = await rail.query(
    sql`select lease_until from webhooks.endpoint_queue where endpoint_id = ${shop.endpoint.id}`,
  );
  t.ok(queue?.lease_until);
  await rail.query(sql`update webhooks.endpoint_queue set lease_until = now() where endpoint_id = ${shop.endpoint.id}`);
  await delivered(shop, 4);
  const sold = receiver.received.map(({ body }) => body.data.external_charge_id);
  t.same([...new Set(sold)], ['ch_1', 'ch_2', 'ch_3', 'ch_4']);
  t.ok(sold.length > 4, 'what had arrived and was not written came again');
});

t.test('writes what came of attempts again when it lost a deadlock, and sends nothing twice', async (t) => {
  const receiver = await startReceiver();
  const shop = await openShop(receiver.url);
  await shop.sell(4);
  await failOnce('40P01');
  await shop.release();
  await delivered(shop, 4);
  t.same(
    receiver.received.map(({ body }) => body.data.external_charge_id),
    ['ch_1', 'ch_2', 'ch_3', 'ch_4'],
  );
});

t.test('signs with a new secret at once, however much is queued', async (t) => {
  let secret = '';
  const receiver = await startReceiver(async ({ headers }, nth) => {
    if (nth === 3)
      secret = (await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint.id}/rotate_secret`)).secret;
    await written(headers['rail-delivery-id'] as string);
    return 200;
  });
  const shop = await openShop(receiver.url);
  await shop.sell(71);
  await shop.release();
  await receiver.until(71);
  const signed = receiver.received.map((one) => accepts(secret, one));
  t.ok(signed.lastIndexOf(false) < 6, 'those that were about to be sent aside, all have two signatures');
});

t.test('sends to the address that holds when an event is told, however shortly after it sent to another', async (t) => {
  const receivers = [await startReceiver(), await startReceiver()] as const;
  const shop = await openShop(receivers[0].url);
  await shop.sell(1);
  await shop.release();
  await receivers[0].until(1);
  for (let nth = 1; nth < 6; nth++) {
    const receiver = receivers[nth % 2] as (typeof receivers)[0];
    await shop.merchant.patch(`/v1/webhook_endpoints/${shop.endpoint.id}`, { url: receiver.url });
    await shop.sell(1);
    await receiver.until(Math.floor(nth / 2) + 1);
  }
  const sold = receivers.map(({ received }) => received.map(({ body }) => body.data.external_charge_id));
  t.same(sold, [
    ['ch_1', 'ch_3', 'ch_5'],
    ['ch_2', 'ch_4', 'ch_6'],
  ]);
});

t.test('sends nothing more to an endpoint that was switched off, however much is queued', async (t) => {
  const receiver = await startReceiver(async ({ headers }, nth) => {
    if (nth === 3) await shop.merchant.post(`/v1/webhook_endpoints/${shop.endpoint.id}/disable`);
    await written(headers['rail-delivery-id'] as string);
    return 200;
  });
  const shop = await openShop(receiver.url);
  await shop.sell(71);
  await shop.release();
  const waiting = async () =>
    (await rail.query(sql`select 1 from webhooks.queued_delivery where endpoint_id = ${shop.endpoint.id}`)).length;
  await eventually(async () => (await waiting()) === 0, 'the end of the queue');
  t.ok(receiver.received.length < 6, 'those that were about to be sent aside, none was');
});

interface Shop {
  merchant: Caller;
  endpoint: Json;
  /** Makes so many events, `sale.created`, of the charges ch_1, ch_2, … */
  sell(count: number): Promise<void>;
  /** Lets all of them be sent, once they are enqueued. */
  release(): Promise<void>;
}

async function openShop(url: string): Promise<Shop> {
  const merchant = await rail.organization();
  const fields = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', fields);
  const endpoint = await merchant.post('/v1/webhook_endpoints', { program_id, url, event_types: ['sale.created'] });
  const { id: partner_id } = await merchant.post('/v1/partners', { program_id, email: 'ada@partner.example.com' });
  const held = await holdQueue(rail, endpoint.id);
  let sales = 0;
  return {
    merchant,
    endpoint,
    async sell(count) {
      const until = sales + count;
      while (sales < until) {
        const external_charge_id = `ch_${++sales}`;
        await merchant.post('/v1/sales', {
          ...{ program_id, partner_id, amount_minor: 100, currency: 'USD', external_charge_id },
        });
      }
    },
    release: () => held.release(sales),
  };
}

const deliveries = ({ id }: Json): Promise<Json[]> =>
  rail.query(sql`select id, status from webhooks.delivery where endpoint_id = ${id}`);

const delivered = ({ endpoint }: Shop, count: number): Promise<void> =>
  eventually(
    async () => (await deliveries(endpoint)).filter(({ status }) => status === 'delivered').length === count,
    `${count} deliveries`,
  );

/** Waits until what came of the deliveries before this one is written. */
function written(delivery_id: string): Promise<void> {
  const unwritten = sql`
    select 1 from webhooks.delivery this
    join webhooks.queued_delivery q on q.endpoint_id = this.endpoint_id and q.queue_position < this.queue_position
    where this.id = ${delivery_id}`;
  return eventually(async () => (await rail.query(unwritten)).length === 0, 'what came before to be written');
}

function accepts(secret: string, { raw, headers }: Received): boolean {
  try {
    return Boolean(new Webhook(secret).verify(raw, headers));
  } catch {
    return false;
  }
}

/** Lets the second statement from now on fail that writes what came of attempts, once what comes after them waits to be written too. */
async function failOnce(code: string): Promise<void> {
  await rail.store.database.query(`
    create or replace function public.fail_once() returns trigger language plpgsql as $$
    begin
      if nextval('public.written') = 2 then
        perform pg_sleep(0.5);
        raise exception 'This once it fails.' using errcode = '${code}';
      end if;
      return new;
    end $$;
    alter sequence public.written restart`);
}
