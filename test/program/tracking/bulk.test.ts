/** POST /v1/clicks/bulk: each click has the outcome that it would have had by itself, in its place. */
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { fresh, openShop, type Shop } from '../../shop.ts';

const rail = await startRail();
// While nothing else runs: a trigger locks the clicks' partitions in another order than those who record clicks.
await rail.query(sql`
  create function public.refuse_bad() returns trigger language plpgsql as $$
  begin
    raise exception 'bad' using errcode = '22003';
  end $$`);
await rail.query(
  sql`create trigger refuse_bad before insert on program.click for each row when (new.device = 'bad') execute function public.refuse_bad()`,
);

const sent = (shop: Shop, value: string, fields: Json = {}): Json => ({
  ...{ program_id: shop.program_id, value, visitor_token: fresh('visitor'), landing_url: 'https://acme.example.com/' },
  ...fields,
});

/** An outcome without what differs by who records it. */
function comparable({ status, click, error }: Json): Json {
  const { id: _, created_at: __, ...same } = click ?? {};
  return { status, click: click && same, error };
}

t.test('answers each in its place as it would have been answered by itself', async (t) => {
  const shop = await openShop(rail);
  const { merchant } = shop;
  const partner = await shop.partner();
  const link = await shop.link(partner, { value: 'Summer' });
  const suspended = await shop.partner();
  await merchant.patch(`/v1/partners/${suspended.id}`, { status: 'suspended' });
  const clicks = [
    sent(shop, partner.handle),
    sent(shop, 'nobody'),
    sent(shop, link.value.toLowerCase(), { country: 'DE', user_agent: 'x'.repeat(2_000) }),
    { ...sent(shop, partner.handle), visitor_token: undefined },
    sent(shop, suspended.handle, { ip: 'no address' }),
    sent(shop, partner.handle, { misspelt: 1 }),
    sent(shop, partner.handle, { program_id: 'prg_nothing' }),
    sent(shop, ` ${partner.handle}\u200b`, { device: 'a\u0000b' }),
  ];
  const alone: Json[] = [];
  for (const click of clicks) {
    const { status, body } = await merchant.request('POST', '/v1/clicks', click);
    alone.push(comparable(status === 201 ? { status, click: body } : { status, error: body.error }));
  }
  t.same(
    alone.map(({ status }) => status),
    [201, 404, 201, 400, 201, 400, 404, 201],
  );
  const { status, body, headers } = await merchant.request('POST', '/v1/clicks/bulk', clicks);
  t.equal(status, 200);
  t.same(body.data.map(comparable), alone);
  const rows = await rail.query<Json>(sql`
    select id, inserted_in from program.click where request_id = ${headers['rail-request-id']} order by id`);
  const made = body.data.flatMap(({ click }: Json) => (click ? [click.id] : []));
  t.same(
    rows.map(({ id }) => id),
    made.toSorted(),
  );
  t.equal(new Set(rows.map(({ inserted_in }) => inserted_in)).size, 1);
});

t.test('takes lines, and records 1,000 clicks, which are attributed', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const clicks = Array.from({ length: 1_000 }, (_, nth) =>
    sent(shop, partner.handle, { country: nth === 500 ? 'X' : 'DE' }),
  );
  const lines = clicks.map((click) => JSON.stringify(click)).join('\n');
  const answer = await fetch(`${rail.address}/v1/clicks/bulk`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${shop.merchant.key}`, 'Content-Type': 'application/x-ndjson' },
    body: lines,
  });
  t.equal(answer.status, 200);
  const { data } = (await answer.json()) as Json;
  t.equal(data.length, 1_000);
  t.same([...new Set(data.map(({ status }: Json) => status))], [201]);
  t.match(data[500].click, { country: null, warnings: [{ code: 'detail_left_out', param: 'country' }] });
  const credited = sql`select from program.click where program_id = ${shop.program_id} and referral_id is not null`;
  await eventually(async () => (await rail.query(credited)).length === 1_000, 'their attribution');
  const { total_count } = await shop.merchant.get(`/v1/referrals?program_id=${shop.program_id}&limit=1`);
  t.equal(total_count, 1_000);
});

t.test('one that Postgres refuses spoils no other', async (t) => {
  const shop = await openShop(rail);
  const { handle } = await shop.partner();
  const clicks = Array.from({ length: 5 }, (_, nth) => sent(shop, handle, nth === 2 ? { device: 'bad' } : {}));
  const { status, body } = await shop.merchant.request('POST', '/v1/clicks/bulk', clicks);
  t.equal(status, 200);
  t.same(
    body.data.map((one: Json) => one.status),
    [201, 201, 400, 201, 201],
  );
  t.equal((await shop.list('clicks')).length, 4);
});
