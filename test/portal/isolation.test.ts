import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { typedIn } from '../../src/portal/fields.ts';
import { redeemMagicLink } from '../../src/program/partners/magic_link.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { browse } from '../pages/browse.ts';
import { batchOf, payee } from '../program/payouts/fixture.ts';
import { openShop, type Shop } from '../shop.ts';
import { formAt, signedIn } from './partner_browser.ts';

const rail = await startRail();
const receiver = await startReceiver();

/** All addresses of the portal, as its files have them. */
const routes = globSync('src/portal/*.ts', { cwd: join(import.meta.dirname, '../..') })
  .flatMap((file) => [
    ...readFileSync(join(import.meta.dirname, '../..', file), 'utf8').matchAll(/\.(get|post)\(\s*'(\/portal[^']*)'/g),
  ])
  .map(([, method, path]) => ({ method: method as 'get' | 'post', path: path as string }));

/** A partner who has one of each thing that a page of the portal shows. */
async function furnished(shop: Shop): Promise<{ partner: Json; ids: string[] }> {
  const { merchant } = shop;
  const partner = await payee(shop, [7000]);
  const link = await shop.link(partner);
  const endpoint = await shop.endpoint(receiver.url, { partner_id: partner.id });
  await shop.coupon({ partner_id: partner.id });
  const customer = await shop.referred(partner);
  const sale = await shop.sale({ customer_id: customer.id });
  const [commission] = (await shop.commissionsOf(sale)) as [Json];
  await batchOf(shop);
  const [payout] = (await shop.list('payouts', `partner_id=${partner.id}`)) as [Json];
  let deliveries: Json[] = [];
  await eventually(async () => {
    deliveries = (await merchant.get(`/v1/webhook_endpoints/${endpoint.id}/deliveries`)).data;
    return deliveries.length > 0;
  }, 'a delivery');
  return {
    partner,
    ids: [link.id, endpoint.id, commission.id, payout.id, (deliveries[0] as Json).id, customer.id, sale.id],
  };
}

t.test('what is of another partner or organization is on no page, and its ids are not found', async (t) => {
  t.ok(routes.filter(({ path }) => path.includes(':')).length >= 8, 'the addresses are found in the files');
  const shop = await openShop(rail, { holding_period_days: 0 });
  const other = await openShop(rail, { holding_period_days: 0 });
  await Promise.all([shop.rule(), other.rule()]);
  const [mine, theirs, foreign] = [await furnished(shop), await furnished(shop), await furnished(other)];
  const browser = await signedIn(shop, mine.partner.id, rail.address);
  const stranger = browse(rail.address);
  const others = [theirs, foreign].flatMap(({ partner, ids }) => [partner.id, partner.email, partner.handle, ...ids]);
  let asked = 0;
  for (const { method, path } of routes.filter(({ path }) => !path.includes('sign_'))) {
    if (!path.includes(':id')) {
      if (method === 'post') continue;
      const page = await browser.get(path);
      t.equal(page.status, 200, path);
      t.same(
        others.filter((one) => page.html.includes(one)),
        [],
        path,
      );
      t.equal((await stranger.get(path)).path, '/portal/sign_in', path);
      continue;
    }
    for (const id of [...theirs.ids, ...foreign.ids, theirs.partner.id, 'x', '%00', '../../v1/programs']) {
      const actions = path.includes(':action') ? ['ping', 'rotate', 'disable', 'enable', 'delete', 'nothing'] : [''];
      for (const action of actions) {
        const address = path.replace(':id', encodeURIComponent(id)).replace(':action', action);
        const page = method === 'get' ? await browser.get(address) : await browser.post(address, {});
        t.equal(page.status, 404, `${method} ${address}`);
        asked++;
      }
    }
    const [own] = mine.ids;
    t.equal(
      (await stranger.get(path.replace(':id', own as string))).path.startsWith('/portal/sign_in') || method === 'post',
      true,
      path,
    );
  }
  t.ok(asked >= 150, `${asked} addresses`);
  t.equal((await other.merchant.get(`/v1/webhook_endpoints/${foreign.ids[1]}`)).status, 'enabled');
  for (const id of theirs.ids)
    t.equal((await browser.get(`/portal/links?starting_after=${id}`)).status, 400, 'a cursor');
});

t.test('an address that no page has answers a page', async (t) => {
  for (const path of ['/portal/nothing', '/portal/links/a/b/c', '/join', '/join/a/b/c']) {
    const page = await browse(rail.address).get(path);
    t.equal(page.status, 404, path);
    t.match(page.html, '<h1>Not found</h1>', path);
  }
  for (const path of [
    '/r/%00',
    '/r/%ff',
    '/join/%00',
    '/portal/%E0%A4%A',
    '/dashboard/%ff',
    '/docs/%ff',
    '/%ff?a=%ff',
  ]) {
    const page = await browse(rail.address).get(path);
    t.equal(page.status, 400, path);
    t.match(page.html, /<h1>(?:Page not found|This did not work)</, path);
  }
  const { program } = await openShop(rail);
  for (const path of [`/join/${program.subdomain}`, '/portal/sign_in', '/dashboard/sign_in'])
    t.match(await browse(rail.address).get(`${path}/?a=b`), { path: `${path}?a=b`, status: 200 });
  for (const path of ['/portal/', '/dashboard/'])
    t.match(await browse(rail.address).get(path), { path: `${path}sign_in`, status: 200 });
  t.match((await browse(rail.address).get('/v1/%ff')).headers, { 'content-type': /json/ }, 'the API answers as always');
});

t.test('fields that name another partner or program change nothing of theirs', async (t) => {
  const shop = await openShop(rail);
  const [mine, theirs] = [await shop.partner(), await shop.partner()];
  const browser = await signedIn(shop, mine.id, rail.address);
  const page = await browser.get('/portal/links');
  const fields = {
    ...formAt(page, '/portal/links')?.fields,
    value: 'forged',
    partner_id: theirs.id,
    program_id: 'prg_x',
  };
  await browser.post('/portal/links', fields);
  t.match(await shop.list('links'), [{ partner_id: mine.id, value: 'forged' }]);
  const handle = await browser.post('/portal/links', { ...fields, form_key: 'k2', value: theirs.handle });
  t.equal(handle.status, 409, 'the handle of another partner');
  t.notMatch(handle.html, theirs.email);
  await browser.post('/portal/notifications', {
    id: theirs.id,
    handle: 'stolen',
    status: 'suspended',
    language_code: 'fr',
  });
  t.match(await shop.merchant.get(`/v1/partners/${theirs.id}`), { handle: theirs.handle, language_code: null });
  t.match(await shop.merchant.get(`/v1/partners/${mine.id}`), {
    handle: mine.handle,
    status: 'active',
    language_code: 'fr',
  });
  const { id: group_id } = await shop.merchant.post('/v1/groups', {
    program_id: shop.program_id,
    name: 'Spring',
    landing_url: 'https://www.spring.example.org/offer',
  });
  const spring = { ...fields, value: 'spring', destination_url: 'https://spring.example.org/more' };
  t.equal((await browser.post('/portal/links', { ...spring, form_key: 'k3' })).status, 400);
  await shop.merchant.patch(`/v1/partners/${mine.id}`, { group_id });
  t.match((await browser.post('/portal/links', { ...spring, form_key: 'k4' })).path, 'done=created');
});

t.test(
  'a partner who is suspended, declined or deleted is signed out with the next page, and a form of another site is refused',
  async (t) => {
    const shop = await openShop(rail);
    const [suspended, deleted, visited] = await Promise.all([1, 2, 3].map(() => shop.partner()));
    const browsers = await Promise.all(
      [suspended, deleted, visited].map((one) => signedIn(shop, (one as Json).id, rail.address)),
    );
    await shop.merchant.patch(`/v1/partners/${suspended?.id}`, { status: 'suspended' });
    await shop.merchant.delete(`/v1/partners/${deleted?.id}`);
    for (const browser of browsers.slice(0, 2)) {
      t.match((await browser.get('/portal/commissions')).text, 'Your access has ended');
      t.equal(
        (await browser.post('/portal/links', { destination_url: 'https://acme.example.com/' })).path,
        '/portal/sign_in?closed',
      );
    }
    const [, , browser] = browsers;
    for (const headers of [{ origin: 'https://evil.example.com' }, { 'sec-fetch-site': 'cross-site' }] as Record<
      string,
      string
    >[]) {
      t.equal((await browser?.post('/portal/links', { value: 'evil' }, headers))?.status, 403);
      t.equal(
        (await browser?.post(`/join/${shop.program.subdomain}`, { email: 'eve@example.com' }, headers))?.status,
        403,
      );
    }
    t.same(await shop.list('links'), []);
    const page = await browser?.get('/portal');
    t.match(page?.headers, { 'content-security-policy': /frame-ancestors 'none'/, 'cache-control': /no-store/ });
  },
);

t.test('the role of the portal sees the rows of one partner, whatever a statement asks for', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0 });
  await shop.rule();
  const [mine, theirs] = [await furnished(shop), await furnished(shop)];
  const client = await rail.store.database.connect();
  t.teardown(() => client.release());
  await client.query('begin');
  await client.query('select core.open_partner_request($1, $2)', [shop.merchant.organization_id, mine.partner.id]);
  for (const [table, column] of Object.entries({
    'program.partner': 'id',
    'program.link': 'partner_id',
    'program.commission': 'partner_id',
    'program.payout': 'partner_id',
    'program.payout_method': 'partner_id',
    'program.customer': 'partner_id',
    'webhooks.endpoint': 'partner_id',
  })) {
    const { rows } = await client.query(`select distinct ${column} as of from ${table}`);
    t.same(rows, [{ of: mine.partner.id }], table);
  }
  for (const [table, column] of [
    ['webhooks.delivery', 'endpoint_id'],
    ['program.payout_commission', 'payout_id'],
  ]) {
    const { rows } = await client.query(`select distinct ${column} as of from ${table}`);
    t.equal(rows.length, 1, String(table));
    t.ok(mine.ids.includes(rows[0].of), String(table));
  }
  for (const table of ['program.processor_event', 'program.rail', 'core.api_key', 'program.payout_batch'])
    t.equal(
      (await client.query(`select count(*)::int as n from ${table}`).catch(() => ({ rows: [{ n: 0 }] }))).rows[0].n,
      0,
      table,
    );
  await client.query('rollback');
  t.ok(theirs.ids.length > 0);
});

const paypal = (email: string) => ({ email, again: email });

t.test('a form takes no Idempotency-Key from a request to the API', async (t) => {
  const shop = await openShop(rail);
  const address = `/join/${shop.program.subdomain}`;
  const key = `sale-${crypto.randomUUID()}`;
  const joined = await browse(rail.address).post(address, { email: 'taker@example.com', form_key: key });
  t.equal(joined.status, 200, joined.text);
  const send = (email: string) => browse(rail.address).post(address, { email, form_key: key });
  for (const email of ['other@example.com', 'other@example.com']) t.equal((await send(email)).status, 200);
  t.equal((await shop.list('applications')).length, 2, 'who goes back and types something else sends another form');
  const body = { program_id: shop.program_id, name: 'Recorded' };
  const made = await shop.merchant.request('POST', '/v1/groups', body, { 'Idempotency-Key': key });
  t.equal(made.status, 201, JSON.stringify(made.body));
});

t.test('a form of a partner that is sent again after another one sets nothing back', async (t) => {
  const shop = await openShop(rail);
  const partner = await shop.partner();
  const browser = await signedIn(shop, partner.id, rail.address);
  for (const [path, first, second] of [
    ['/portal/payout_method?method=paypal', paypal('one@example.com'), paypal('two@example.com')],
    ['/portal/notifications', { language_code: 'de' }, { language_code: 'fr' }],
  ] as const) {
    const form = async () => formAt(await browser.get(path), path.split('?')[0] as string);
    const [one, two] = [await form(), await form()];
    for (const [sent, typed] of [
      [one, first],
      [two, second],
      [one, first],
    ] as const)
      t.match((await browser.submit(sent, typed)).path, 'done=saved');
  }
  t.match(await shop.merchant.get(`/v1/partners/${partner.id}/payout_method`), { hint: 'two' });
  const change = async (email: string, times: number) => {
    const form = formAt(await browser.get('/portal/payout_method?method=paypal'), '/portal/payout_method');
    for (let nth = 1; nth < times; nth++) await browser.submit(form, paypal(email));
    return (await browser.submit(form, paypal(email))).path;
  };
  for (const email of ['three@example.com', 'four@example.com', 'five@example.com'])
    t.match(
      await change(email, 2),
      'done=saved',
      'the second click on the last one of a day is told what the first did',
    );
  t.notMatch(await change('six@example.com', 1), 'done=saved');
  t.match(await shop.merchant.get(`/v1/partners/${partner.id}`), { language_code: 'fr' });
});

t.test('a form with as many names as its body has room for is read once from first to last', (t) => {
  let reads = 0;
  class Counted extends URLSearchParams {
    override getAll(name: string): string[] {
      reads++;
      return super.getAll(name);
    }
  }
  const names = Array.from({ length: 1_000 }, (_, nth) => `a${nth}=${nth}`);
  const typed = typedIn(new Counted([...names, 'a1=again', '__proto__=x'].join('&')));
  t.same([typed.a0, typed.a1, Object.keys(typed).length], [['0'], ['1', 'again'], 1_001]);
  t.equal(reads, 0, 'a search of the whole form for each name');
  t.equal(Object.getPrototypeOf(typed), Object.prototype);
  t.end();
});

const guest = await openShop(rail);
const partner = await guest.partner();

const redeem = (token: string, now?: string) =>
  transaction(rail.store, { organization_id: null, request_id: null, now }, (tx) => redeemMagicLink(tx, token));

async function newToken(): Promise<{ token: string; expires_at: string }> {
  const { url, expires_at } = await guest.merchant.post(`/v1/partners/${partner.id}/magic_link`);
  return { token: new URL(url).searchParams.get('token') as string, expires_at };
}

t.test('a magic link signs its partner in', async (t) => {
  const { token } = await newToken();
  t.same(await redeem(token), { organization_id: guest.merchant.organization_id, partner_id: partner.id });
});

t.test('a magic link is redeemed once, also by two concurrent attempts', async (t) => {
  const { token } = await newToken();
  const let_in = (await Promise.all([redeem(token), redeem(token), redeem(token)])).filter(Boolean);
  t.equal(let_in.length, 1);
  t.equal(await redeem(token), undefined);
});

t.test('the page of a magic link shows a button, and uses no token up', async (t) => {
  const { url } = await guest.merchant.post(`/v1/partners/${partner.id}/magic_link`);
  const { pathname, search } = new URL(url);
  const answer = await fetch(new URL(pathname + search, rail.address), { headers: { Accept: 'text/html' } });
  t.same([answer.status, answer.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  t.match(await answer.text(), 'Press the button to sign in. The link works once.');
  t.match(await redeem(new URL(url).searchParams.get('token') as string), { partner_id: partner.id });
});

t.test('a magic link expires after 15 minutes', async (t) => {
  const { token, expires_at } = await newToken();
  t.equal(await redeem(token, expires_at), undefined);
  const just_before = new Date(Date.parse(expires_at) - 1).toISOString();
  t.match(await redeem(token, just_before), { partner_id: partner.id });
});

t.test('links that expired are deleted when another one is made', async (t) => {
  await rail.query(sql`update program.magic_link set created_at = now() - interval '25 hours'`);
  await newToken();
  t.equal((await rail.query(sql`select from program.magic_link where partner_id = ${partner.id}`)).length, 1);
});

t.test('a magic link of a suspended partner is not redeemed', async (t) => {
  const { token } = await newToken();
  await guest.merchant.patch(`/v1/partners/${partner.id}`, { status: 'suspended' });
  t.equal(await redeem(token), undefined);
  t.equal(await redeem('nobody-made-this-token'), undefined);
});

t.test('the token is stored hashed', async (t) => {
  const { token } = await newToken();
  const rows = await rail.query(sql`select row_to_json(m)::text as stored from program.magic_link m`);
  t.ok(rows.length > 0);
  t.notOk(rows.some(({ stored }) => stored.includes(token) || stored.includes(Buffer.from(token).toString('hex'))));
});
