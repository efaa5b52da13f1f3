import pg from 'pg';
import t, { type Test } from 'tap';
import { newId } from '../../../src/core/values/id.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail({ worker: false });
const writers = 16;
const events_of_each = 30;

/** One page of a program's events. */
const page = ({ merchant, program_id }: Shop, query: Record<string, string | number> = {}): Promise<Json> => {
  const fields = Object.entries({ program_id, ...query }).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return merchant.get(`/v1/events?${new URLSearchParams(fields)}`);
};

const idsOf = (events: Json[]): string[] => events.map(({ id }) => id);

/** The ids of a program's events in the strict sequence, oldest first. */
const sequenceOf = async ({ program_id }: Shop): Promise<string[]> =>
  idsOf(await rail.query(sql`select id from webhooks.event where program_id = ${program_id} order by position`));

/** Polls as a client does that must miss nothing: asks for what is newer than the newest event it has. Gives their ids, oldest first. */
async function poll(shop: Shop, first: string, writing: { done: boolean }): Promise<string[]> {
  const seen = [first];
  for (let last = false; !last; ) {
    last = writing.done;
    for (let more = true; more; ) {
      const { data, has_more } = await page(shop, { limit: 100, ending_before: seen.at(-1) as string });
      seen.push(...idsOf(data).reverse());
      more = has_more;
    }
  }
  return seen;
}

/** A transaction of its own, which stays open until it is told otherwise. */
async function openTransaction(t: Test) {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  t.teardown(() => client.end());
  await client.query('begin');
  return {
    query: (text: string, values: unknown[] = []) => client.query(text, values),
    /** Writes an event of a shop, as a request does just before it commits. @returns its id */
    async write({ merchant, program_id }: Shop, id = newId('evt')): Promise<string> {
      const { organization_id } = merchant;
      const event = {
        id,
        program_id,
        partner_id: null,
        type: 'affiliate.updated',
        livemode: true,
        body: '{"data": {}}',
      };
      await client.query('select core.open_request($1, null)', [organization_id]);
      await client.query(`select webhooks.write_events($1, null, now(), $2, 'whd')`, [
        organization_id,
        JSON.stringify([{ ...event, postback_body: null }]),
      ]);
      return id;
    },
    end: (how: 'commit' | 'rollback') => client.query(how),
  };
}

t.test('a client that polls with ending_before sees every event once, in the strict sequence', async (t) => {
  const shop = await openShop(rail);
  await shop.partner();
  const [first] = (await sequenceOf(shop)) as [string];
  const writing = { done: false };
  const pollers = [poll(shop, first, writing), poll(shop, first, writing)];
  const write = async () => {
    for (let nth = 0; nth < events_of_each; nth++) await shop.partner();
  };
  await Promise.all(Array.from({ length: writers }, write));
  writing.done = true;
  const sequence = await sequenceOf(shop);
  t.ok(sequence.length > writers * events_of_each);
  for (const seen of await Promise.all(pollers)) {
    const missed = sequence.filter((id) => !seen.includes(id));
    t.same(missed, [], 'none is missed');
    t.same(seen, sequence);
  }
});

t.test('an event is shown once every event before it is visible', async (t) => {
  const shop = await openShop(rail);
  await shop.partner();
  const before = idsOf((await page(shop)).data);
  const first = await openTransaction(t);
  const second = await openTransaction(t);
  const written = [await first.write(shop), await second.write(shop)];
  await second.end('commit');
  await shop.partner();

  const meanwhile = await page(shop);
  t.same(idsOf(meanwhile.data), before, 'nothing that follows the event of the open transaction');
  t.equal(meanwhile.total_count, before.length);
  t.same((await page(shop, { ending_before: before[0] as string })).data, []);
  const { status } = await shop.merchant.request('GET', `/v1/events/${written[1]}`);
  t.equal(status, 200, 'by its id it can be read');

  await t.test('other organizations do not wait', async (t) => {
    const other = await openShop(rail);
    await other.partner();
    t.same(idsOf((await page(other)).data).reverse(), await sequenceOf(other));
    t.ok((await sequenceOf(other)).length > 0);
  });

  await first.end('commit');
  const after = idsOf((await page(shop, { ending_before: before[0] as string })).data).reverse();
  t.same(after.slice(0, 2), written);
  t.same([...before.toReversed(), ...after], await sequenceOf(shop));
});

t.test('an endpoint receives events in the order in which they are listed', async (t) => {
  const shop = await openShop(rail);
  const { id: endpoint_id } = await shop.merchant.post('/v1/webhook_endpoints', {
    program_id: shop.program_id,
    url: 'http://127.0.0.1:9/',
  });
  const fanOut = () => rail.query(sql`select webhooks.fan_out(1000)`);
  const queued = async () =>
    (
      await rail.query<{ event_id: string }>(
        sql`select event_id from webhooks.delivery where endpoint_id = ${endpoint_id} order by queue_position`,
      )
    ).map(({ event_id }) => event_id);
  await fanOut();
  const first = await openTransaction(t);
  const second = await openTransaction(t);
  const third = await openTransaction(t);
  const written = [await first.write(shop), await second.write(shop), await third.write(shop)];
  await third.end('commit');
  await fanOut();
  t.same(await queued(), [], 'nothing overtakes an event that is still written');
  await first.end('commit');
  await fanOut();
  t.same(await queued(), written.slice(0, 1));

  const other = await openShop(rail);
  await other.partner();
  await fanOut();
  const [waiting] = await rail.query(
    sql`select from webhooks.pending_event where organization_id = ${other.merchant.organization_id}`,
  );
  t.equal(waiting, undefined, 'other organizations do not wait');

  await second.end('rollback');
  await fanOut();
  t.same(await queued(), [written[0], written[2]]);
});

t.test('an event that is rolled back holds nothing back', async (t) => {
  const shop = await openShop(rail);
  const open = await openTransaction(t);
  await open.write(shop);
  await shop.partner();
  await open.end('rollback');
  const sequence = await sequenceOf(shop);
  t.ok(sequence.length > 0);
  t.same(idsOf((await page(shop)).data).reverse(), sequence);
});

t.test('a transaction that has written no event yet holds nothing back', async (t) => {
  const shop = await openShop(rail);
  const { id } = await shop.partner();
  const long = await openTransaction(t);
  await long.query(`update program.partner set first_name = 'Ada' where id = $1`, [id]);
  await shop.partner();
  const before = await sequenceOf(shop);
  t.same(idsOf((await page(shop)).data).reverse(), before);
  const written = await long.write(shop);
  await long.end('commit');
  t.same(idsOf((await page(shop, { ending_before: before.at(-1) as string })).data), [written]);
});

t.test('events are walked in their sequence both ways, whatever their ids and partitions', async (t) => {
  const shop = await openShop(rail);
  const written: string[] = [];
  for (const days of [7, 0, 14, -1, 7, 0, 1]) {
    const open = await openTransaction(t);
    written.push(await open.write(shop, await idAt(days)));
    await open.end('commit');
  }
  const sequence = await sequenceOf(shop);
  t.same(sequence.slice(-written.length), written);
  const newest_first = sequence.toReversed();
  t.same(idsOf((await page(shop)).data), newest_first);

  const forth: string[] = [];
  for (let more = true; more; ) {
    const cursor = forth.at(-1);
    const { data, has_more } = await page(shop, { limit: 2, ...(cursor ? { starting_after: cursor } : {}) });
    forth.push(...idsOf(data));
    more = has_more;
  }
  t.same(forth, newest_first);

  const back = [newest_first.at(-1) as string];
  for (let more = true; more; ) {
    const { data, has_more } = await page(shop, { limit: 2, ending_before: back[0] as string });
    back.unshift(...idsOf(data));
    more = has_more;
  }
  t.same(back, newest_first);
  t.same(idsOf((await page(shop, { type: 'affiliate.updated', limit: 3 })).data), written.toReversed().slice(0, 3));
});

/** The id of an event as if it was told so many days from now. */
async function idAt(days: number): Promise<string> {
  const [row] = await rail.query<{ id: string }>(sql`
    select 'evt_' || core.id_time_part(now() + make_interval(days => ${days})) || right(${newId('evt')}, 16) as id`);
  return row?.id as string;
}
