import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail({ worker: false });
const together = 40;

const sent = (shop: Shop, value: string, fields: Json = {}): Json => ({
  ...{ program_id: shop.program_id, value, visitor_token: fresh('visitor'), landing_url: 'https://acme.example.com/' },
  ...fields,
});

const rowsOf = ({ merchant }: Shop) =>
  rail.query<{ id: string; inserted_in: string; visitor_token: string; request_id: string }>(sql`
    select id, inserted_in::text, visitor_token, request_id from program.click where organization_id = ${merchant.organization_id}`);

const many = (send: (nth: number) => Promise<{ status: number; body: Json; headers: Json }>) =>
  Promise.all(Array.from({ length: together }, (_, nth) => send(nth)));

t.test('clicks that come together share a transaction, and each is answered for itself', async (t) => {
  const shops = [await openShop(rail), await openShop(rail)] as const;
  const partners = await Promise.all(shops.map((shop) => shop.partner()));
  const bodies = Array.from({ length: together }, (_, nth) => {
    const own = nth % 2;
    return sent(shops[own] as Shop, nth % 10 === 4 ? 'nobody' : (partners[own]?.handle as string));
  });
  const answers = await many((nth) => (shops[nth % 2] as Shop).merchant.request('POST', '/v1/clicks', bodies[nth]));
  for (const [nth, { status, body }] of answers.entries()) {
    if (nth % 10 === 4) t.match({ status, body }, { status: 404, body: { error: { param: 'value' } } });
    else t.match({ status, body }, { status: 201, body: { partner_id: partners[nth % 2]?.id, referral_id: null } });
  }
  for (const [own, shop] of shops.entries()) {
    const rows = await rowsOf(shop);
    const recorded = answers.flatMap(({ status, body, headers }, nth) =>
      nth % 2 === own && status === 201
        ? [{ id: body.id, visitor_token: bodies[nth]?.visitor_token, request_id: headers['rail-request-id'] }]
        : [],
    );
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
    t.same(rows.map(({ inserted_in: _, ...row }) => row).toSorted(byId), recorded.toSorted(byId));
    const transactions = new Set(rows.map(({ inserted_in }) => inserted_in)).size;
    t.ok(transactions < rows.length, `${rows.length} clicks in ${transactions} transactions`);
    for (const { body } of answers.filter(({ status }, nth) => nth % 2 === own && status === 201).slice(0, 3))
      t.same(await shop.merchant.get(`/v1/clicks/${body.id}`), body, 'answered as it is stored');
  }
});

t.test('so do visits of short links, and of a visitor all clicks count', async (t) => {
  const shop = await openShop(rail);
  const link = await shop.link(await shop.partner());
  const follow = async () => {
    const { status, headers } = await fetch(`${rail.address}/r/${link.short_slug}`, { redirect: 'manual' });
    return { status, body: {}, headers: { location: headers.get('location') } };
  };
  const answers = await many(follow);
  t.same([...new Set(answers.map(({ status }) => status))], [302]);
  const rows = await rowsOf(shop);
  t.same(
    rows.map(({ id }) => id).toSorted(),
    answers.map(({ headers }) => new URL(headers.location).searchParams.get('rail_click')).toSorted(),
  );
  t.ok(new Set(rows.map(({ inserted_in }) => inserted_in)).size < together);
});

t.test('one that Postgres refuses fails alone', async (t) => {
  const shop = await openShop(rail);
  const { handle } = await shop.partner();
  await rail.query(
    sql`alter table program.click add constraint none_of_bad check (device is distinct from 'bad') not valid`,
  );
  const answers = await many((nth) =>
    shop.merchant.request('POST', '/v1/clicks', sent(shop, handle, nth === 7 ? { device: 'bad' } : {})),
  );
  t.same(
    answers.map(({ status }) => status),
    Array.from({ length: together }, (_, nth) => (nth === 7 ? 500 : 201)),
  );
  t.equal((await rowsOf(shop)).length, together - 1);
  await rail.query(sql`alter table program.click drop constraint none_of_bad`);
});

t.test('one with an idempotency key is recorded once', async (t) => {
  const shop = await openShop(rail);
  const { handle } = await shop.partner();
  const body = sent(shop, handle);
  const send = () => shop.merchant.request('POST', '/v1/clicks', body, { 'Idempotency-Key': 'once' });
  const answers = await many(send);
  const recorded = answers.filter(({ status }) => status === 201);
  t.ok(recorded.length > 0 && answers.every(({ status }) => status === 201 || status === 409));
  t.equal(new Set(recorded.map(({ body: { id } }) => id)).size, 1);
  t.equal((await rowsOf(shop)).length, 1);
});

t.test('one organization that waits holds up no other one', async (t) => {
  const shops = [await openShop(rail), await openShop(rail)] as const;
  const partners = await Promise.all(shops.map((shop) => shop.partner()));
  const click = (nth: 0 | 1) => shops[nth].merchant.post('/v1/clicks', sent(shops[nth], partners[nth]?.handle));
  await click(0);
  const client = await rail.store.database.connect();
  await client.query('begin');
  await client.query('select from graphile_worker._private_jobs where key = $1 for update', [
    `program/attribute_clicks:${shops[0].merchant.organization_id}`,
  ]);
  const held = Array.from({ length: 3 }, () => click(0));
  const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await eventually(async () => (await rail.query(waiting)).length > 0, 'the first to wait');
  await Promise.all(Array.from({ length: 3 }, () => click(1)));
  await client.query('rollback');
  client.release();
  await Promise.all(held);
  t.equal((await rowsOf(shops[0])).length, 4);
  t.equal((await rowsOf(shops[1])).length, 3);
});
