import { createHmac } from 'node:crypto';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { trustedProxies } from '../../../src/core/net/client_address.ts';
import { operations } from '../../../src/operations.ts';
import { callerOf, eventually, type Json, log, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';

const rail = await startRail();
const browser = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';
const origin = 'https://acme.example.com';
const gone = 'clk_01kap3b6n8f2v9w4x7y0z1a2b3';

interface Site extends Shop {
  key: Json;
  partner_of: Json;
}

async function openSite(settings: Json = {}): Promise<Site> {
  const shop = await openShop(rail, settings);
  const key = await shop.merchant.post('/v1/publishable_keys', {
    program_id: shop.program_id,
    allowed_origins: [origin],
  });
  return { ...shop, key, partner_of: await shop.partner() };
}

async function send(path: string, body: unknown, headers: Record<string, string | undefined> = {}) {
  const all = { Origin: origin, 'User-Agent': browser, 'Content-Type': 'text/plain;charset=UTF-8', ...headers };
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const response = await fetch(rail.address + path, {
    method: 'POST',
    headers: Object.fromEntries(given),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

const click = ({ key, partner_of }: Site, fields: Json = {}, headers?: Record<string, string | undefined>) =>
  send(
    '/v1/track/click',
    { key: key.key, param: 'ref', value: partner_of.handle, url: `${origin}/?ref=a`, ...fields },
    headers,
  );
const lead = ({ key }: Site, fields: Json, headers?: Record<string, string | undefined>) =>
  send('/v1/track/lead', { key: key.key, ...fields }, headers);
const clicksOf = (site: Site) => site.list('clicks');
const attributed = (site: Site) =>
  eventually(async () => (await clicksOf(site)).every(({ referral_id }) => referral_id), 'attribution');

t.test('a publishable key opens no operation of the API, whatever it is asked for', async (t) => {
  const { key, merchant } = await openSite();
  const caller = callerOf(rail.address, key.key, merchant.organization_id);
  for (const { name, method, path } of operations) {
    const answer = await caller.request(method, path.replaceAll(/\{\w+\}/g, key.id), method === 'GET' ? undefined : {});
    t.match(answer, { status: 403, body: { error: { code: 'insufficient_scope' } } }, name);
  }
  t.ok(operations.length > 200);
});

t.test('is created with its script element and the secret that signs leads, which is shown once', async (t) => {
  const { key, merchant } = await openSite({ url_params: ['partner', 'a b'] });
  t.match(key.key, /^rail_pk_live_[\w-]{32}$/);
  t.match(key.signing_secret, /^rail_sig_[\w-]{43}$/);
  t.equal(
    key.snippet,
    `<script async src="${rail.services.base_url}/rail.js" data-key="${key.key}" data-params="partner a%20b"></script>`,
  );
  const read = await merchant.get(`/v1/publishable_keys/${key.id}`);
  t.same([read.signing_secret, read.key], [undefined, key.key]);
  const [row] = await rail.query(sql`select signing_secret::text from program.publishable_key where id = ${key.id}`);
  t.notOk(row?.signing_secret.includes(Buffer.from(key.signing_secret).toString('hex')), 'encrypted');
  const wrong = [
    'https://acme.example.com/path',
    'acme.example.com',
    'https://*.example.com',
    'ftp://acme.example.com',
    'null',
  ];
  for (const one of wrong) {
    const body = { program_id: key.program_id, allowed_origins: [one] };
    t.match(
      await merchant.request('POST', '/v1/publishable_keys', body),
      { status: 400, body: { error: { param: /^allowed_origins/ } } },
      one,
    );
  }
  const { allowed_origins } = await merchant.patch(`/v1/publishable_keys/${key.id}`, {
    allowed_origins: ['HTTPS://Acme.Example.com:443/', 'http://localhost:3000'],
  });
  t.same(allowed_origins, ['https://acme.example.com', 'http://localhost:3000'], 'as browsers send it');
});

t.test(
  'records a click, answers what the browser is to keep, and sets it as a cookie of the whole domain',
  async (t) => {
    const site = await openSite({ cookie_days: 30 });
    const answer = await click(site, { referrer: 'https://ada.example.com/' }, { 'Sec-Fetch-Site': 'same-origin' });
    t.equal(answer.status, 200);
    const [recorded, ...others] = await clicksOf(site);
    t.match(recorded, {
      id: answer.body.click_id,
      partner_id: site.partner_of.id,
      landing_url: `${origin}/?ref=a`,
      user_agent: browser,
    });
    t.same([recorded?.referer, others], ['https://ada.example.com/', []]);
    t.equal(Date.parse(answer.body.expires_at) - Date.parse(recorded?.created_at), 30 * 86_400_000);
    t.equal(answer.headers.get('access-control-allow-origin'), origin);
    t.equal(answer.headers.get('access-control-allow-credentials'), 'true');
    t.match(
      answer.headers.get('set-cookie'),
      new RegExp(
        `^rail_click=${recorded?.id}; Path=/; Max-Age=(2592000|25919\\d\\d); SameSite=Lax; Domain=example.com; Secure$`,
      ),
    );
    t.match(await site.merchant.get(`/v1/publishable_keys/${site.key.id}`), {
      setup: 'first_party',
      last_used_at: /^20/,
    });
    await attributed(site);
    t.equal((await site.list('referrals')).length, 1);
  },
);

t.test('clicks of a browser are of one visitor, and the program decides which of them it keeps', async (t) => {
  for (const attribution of ['last_click', 'first_click']) {
    const site = await openSite({ attribution });
    const first = (await click(site)).body.click_id;
    const other = await site.partner();
    const second = (await click(site, { click_id: first, value: other.handle })).body.click_id;
    await eventually(
      async () => (await site.list('clicks')).filter(({ referral_id }) => referral_id).length > 0,
      'credit',
    );
    const rows = await rail.query(
      sql`select distinct visitor_token from program.click where program_id = ${site.program_id}`,
    );
    t.equal(rows.length, 1, 'one visitor');
    t.equal((await clicksOf(site)).length, 2);
    t.equal(second === first, attribution === 'first_click', attribution);
    const link = await site.link(other);
    const followed = await fetch(`${rail.address}/r/${link.short_slug}`, {
      redirect: 'manual',
      headers: { 'User-Agent': browser },
    });
    const rail_click = new URL(String(followed.headers.get('location'))).searchParams.get('rail_click');
    const arrived = await click(site, { click_id: second, rail_click });
    t.equal(arrived.body.click_id, attribution === 'first_click' ? first : rail_click, 'of a short link');
    t.equal((await clicksOf(site)).length, 3, 'none is recorded beside it');
  }
});

t.test('whoever is passed on the address that a short link led to is a visitor of their own', async (t) => {
  const site = await openSite();
  const { short_slug } = await site.link(site.partner_of);
  const options = { redirect: 'manual', headers: { 'User-Agent': browser } } as const;
  const { headers } = await fetch(`${rail.address}/r/${short_slug}`, options);
  const rail_click = new URL(String(headers.get('location'))).searchParams.get('rail_click');
  await rail.query(
    sql`update program.click set created_at = created_at - interval '31 minutes' where id = ${rail_click}`,
  );
  const arrive = async (fields: Json = {}) => (await click(site, { rail_click, ...fields })).body.click_id;
  t.equal(await arrive({ click_id: rail_click }), rail_click, 'the first visitor again');
  t.equal(await arrive({ value: undefined }), rail_click, 'from another domain of the website');
  const friends = [await arrive(), await arrive()];
  t.equal(new Set([...friends, rail_click]).size, 3);
  await attributed(site);
  for (const [nth, click_id] of [rail_click, ...friends].entries())
    t.match((await lead(site, { click_id, email: `friend${nth}@customer.example.com` })).body, { recorded: true });
  t.equal((await site.list('customers')).length, 3);
});

t.test(
  'what names nobody, a bot, and another program of the organization record nothing, and are no errors',
  async (t) => {
    const site = await openSite();
    const elsewhere = await openShop(rail, {}, site.merchant);
    const foreign = await elsewhere.click(await elsewhere.partner());
    const nothing = { status: 200, body: { click_id: null, expires_at: null } };
    t.match(await click(site, { value: 'nobody' }), nothing);
    t.match(await click(site, { value: undefined }), nothing);
    t.match(await click(site, {}, { 'User-Agent': 'Mozilla/5.0 (compatible; Googlebot/2.1)' }), nothing);
    t.match(await click(site, { value: undefined, rail_click: foreign.id }), nothing);
    t.match(await click(site, { value: undefined, click_id: gone, rail_click: 'clk_x' }), nothing);
    for (const value of ['', 'a'.repeat(65), 'a\0', 'a\ud800', 7, { a: 1 }])
      t.match(
        await click(site, { value, param: 'x'.repeat(33) }),
        nothing,
        `a page opened with ${JSON.stringify(value)}`,
      );
    t.same(await clicksOf(site), []);
    const { body, headers } = await click(site, { cookieless: true });
    t.match(body, { click_id: null });
    t.equal(headers.get('set-cookie'), null);
    t.equal((await clicksOf(site)).length, 1, 'without consent it is counted, and nothing is kept');
    const left = await click(site, { value: undefined, withdraw: true });
    t.match(left.headers.get('set-cookie'), /^rail_click=; Path=\/; Max-Age=0/);
  },
);

t.test('refuses other origins without CORS, and tells an allowed one what is wrong', async (t) => {
  const site = await openSite();
  for (const other of [
    'https://evil.example',
    'https://shop.acme.example.com',
    'http://acme.example.com',
    'null',
    undefined,
  ]) {
    const answer = await click(site, {}, { Origin: other });
    t.match(answer, { status: 403, body: { error: { code: 'origin_not_allowed' } } }, String(other));
    t.equal(answer.headers.get('access-control-allow-origin'), null);
  }
  const wrong = await click(site, { misspelt: 1 });
  t.match(wrong, { status: 400, body: { error: { code: 'unknown_parameter', param: 'misspelt' } } });
  t.equal(wrong.headers.get('access-control-allow-origin'), origin);
  t.match(await send('/v1/track/click', '{'), { status: 400, body: { error: { code: 'invalid_json' } } });
  t.match(await send('/v1/track/click', {}), { status: 400, body: { error: { param: 'key' } } });
  t.match(await send('/v1/track/click', { key: `rail_pk_live_${'a'.repeat(32)}` }), { status: 401 });
  const secret = await send('/v1/track/click', { key: site.merchant.key });
  t.match(secret, { status: 400, body: { error: { param: 'key' } } }, 'a secret key is none');
  t.match(await click(site, { url: 'x'.repeat(1_024) }), {
    status: 413,
    body: { error: { code: 'payload_too_large' } },
  });
  t.same(await clicksOf(site), []);
  await site.merchant.post(`/v1/publishable_keys/${site.key.id}/revoke`);
  await eventually(async () => (await click(site)).status === 401, 'the key to be refused');
});

t.test('a lead is a customer of the partner, unverified, and one of a visitor', async (t) => {
  const site = await openSite();
  const { click_id } = (await click(site)).body;
  const email = 'Grace@customer.example.com';
  t.match(await lead(site, { click_id, email }), { status: 200, body: { recorded: true, verified: false } });
  await lead(site, { click_id, email });
  await Promise.all([1, 2, 3].map((nth) => lead(site, { click_id, email: `other${nth}@customer.example.com` })));
  const [customer, ...others] = await site.list('customers');
  t.same(others, []);
  t.match(customer, {
    email,
    partner_id: site.partner_of.id,
    tracked_by: 'link',
    verified: false,
    external_customer_id: null,
  });
  t.same(
    (await site.events()).map(({ type }) => type).filter((type) => type.startsWith('referral.')),
    ['referral.created', 'referral.lead'],
  );
  const patched = await site.merchant.patch(`/v1/customers/${customer?.id}`, { verified: true });
  t.equal(patched.verified, true);
  t.equal((await site.customer({ partner_id: site.partner_of.id })).verified, true, 'of the merchant');
  const nothing = { status: 200, body: { recorded: false } };
  t.match(await lead(site, { click_id: gone, email }), nothing);
  t.match(await lead(site, { click_id, email: 'no address' }), { status: 400, body: { error: { param: 'email' } } });
  t.match(await lead(site, { click_id }), { status: 400, body: { error: { param: 'email' } } });
  t.match(
    await lead(site, { click_id, email, external_customer_id: 'cus_1' }),
    { status: 400 },
    'nor what sales go by',
  );
});

t.test('the signature of the merchant’s server makes it verified, and holds for nothing else', async (t) => {
  const site = await openSite();
  const sign = (...parts: string[]) =>
    createHmac('sha256', site.key.signing_secret).update(parts.join('|')).digest('hex');
  const { click_id } = (await click(site)).body;
  const other = (await click(site)).body.click_id;
  const email = 'Grace@Customer.example.com';
  const signature = sign(email, 'user_42', click_id);
  const refused = { status: 401, body: { error: { code: 'signature_invalid' } } };
  t.match(await lead(site, { click_id: other, email, identifier: 'user_42', signature }), refused);
  t.match(await lead(site, { click_id, email, identifier: 'user_43', signature }), refused);
  t.match(await lead(site, { click_id, email, signature: sign(email, '', other) }), refused);
  const split = { click_id, email: 'a@example.com', identifier: `b|${click_id}`, signature };
  t.match(await lead(site, split), { status: 400, body: { error: { param: 'signature' } } });
  t.same(await site.list('customers'), []);
  t.match(await lead(site, { click_id, email, identifier: 'user_42' }), { body: { recorded: true, verified: false } });
  t.match(await lead(site, { click_id, email, identifier: 'user_42', signature }), {
    body: { recorded: true, verified: true },
  });
  t.match(
    await lead(site, { click_id, email, identifier: 'user_42' }),
    { body: { recorded: true, verified: false } },
    'nobody can find out by guesses who has signed up',
  );
  const [customer, ...others] = await site.list('customers');
  t.same([customer?.verified, customer?.identifier, others], [true, 'user_42', []]);
  const elsewhere = await openShop(rail, {}, site.merchant);
  const key = await site.merchant.post('/v1/publishable_keys', {
    ...{ program_id: elsewhere.program_id, allowed_origins: [origin] },
  });
  const stranger = await openSite();
  for (const foreign of [{ ...site, key }, stranger]) {
    t.match(await lead(foreign, { click_id, email }), { status: 200, body: { recorded: false } });
    t.match(await lead(foreign, { click_id, email, identifier: 'user_42', signature }), refused);
    t.match(await click(foreign, { value: undefined, click_id, rail_click: click_id }), { body: { click_id: null } });
  }
  t.same([...(await elsewhere.list('customers')), ...(await stranger.list('customers'))], []);
});

t.test('a partner who signs up through the own link is no customer, and the flag stays', async (t) => {
  const site = await openSite();
  const { click_id } = (await click(site)).body;
  const { email } = await site.merchant.get(`/v1/partners/${site.partner_of.id}`);
  t.match(await lead(site, { click_id, email }), { status: 200, body: { recorded: false } });
  t.same(await site.list('customers'), []);
  t.match(await site.list('risk_flags'), [{ kind: 'self_referral' }]);
});

t.test('an address and a key have their own budgets, beside those of secret keys', async (t) => {
  const site = await openSite();
  const app = await buildApi({ ...rail, log, limits: { proxies: trustedProxies('1') } });
  t.teardown(() => app.close());
  const from = (address: string) =>
    app.inject({
      method: 'POST',
      url: '/v1/c',
      headers: { origin, 'user-agent': browser, 'x-forwarded-for': address, 'content-type': 'text/plain' },
      payload: JSON.stringify({ key: site.key.key, value: site.partner_of.handle }),
    });
  // The second does not end meanwhile.
  const { now } = performance;
  const at = now.call(performance);
  t.teardown(() => Object.assign(performance, { now }));
  performance.now = () => at;
  const budget = async (address: (nth: number) => string) => {
    const answers = await Promise.all(Array.from({ length: 11 }, (_, nth) => from(address(nth))));
    t.same(answers.map(({ statusCode }) => statusCode).sort(), [...Array(10).fill(200), 429], address(0));
    t.equal(answers.find(({ statusCode }) => statusCode === 429)?.headers['retry-after'], '1');
  };
  await budget(() => '93.184.216.34');
  await budget((nth) => `2a00:1450:4001:80b:${nth}::1`);
  t.equal((await from('93.184.216.35')).statusCode, 200, 'another address');
  t.equal((await from('2a00:1450:4001:80c::1')).statusCode, 200, 'another network');
  const [row] = await rail.query<{ ip_hash: string | null }>(sql`
    select ip_hash from program.click where program_id = ${site.program_id} order by id desc limit 1`);
  t.match(row?.ip_hash, /^[0-9a-f]{64}$/, 'a hash alone is kept');
  // The key has used 22 of the second's 2,000. A request that is not valid counts too, and is soon refused.
  const wrong = () =>
    app.inject({
      method: 'POST',
      url: '/v1/c',
      headers: { origin },
      payload: JSON.stringify({ key: site.key.key, x: 1 }),
    });
  const statuses = new Map<number, number>();
  for (let nth = 0; nth < 1_980; nth += 60)
    for (const { statusCode } of await Promise.all(Array.from({ length: 60 }, wrong)))
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
  t.same(
    [...statuses],
    [
      [400, 1_978],
      [429, 2],
    ],
  );
  t.equal((await from('93.184.216.36')).statusCode, 429, 'whoever uses it');
  const other = await site.merchant.post('/v1/publishable_keys', {
    program_id: site.program_id,
    allowed_origins: [origin],
  });
  const by_other = await app.inject({
    ...{ method: 'POST', url: '/v1/c', headers: { origin, 'user-agent': browser } },
    payload: JSON.stringify({ key: other.key, value: site.partner_of.handle }),
  });
  t.equal(by_other.statusCode, 200, 'another key');
});

t.test('the script is small, has a copy that never changes, and both are one text', async (t) => {
  const { script } = await import('../../../src/program/snippet/snippet_tag.ts');
  const { gzipSync } = await import('node:zlib');
  const { createHash } = await import('node:crypto');
  const usual = await fetch(`${rail.address}/rail.js`);
  const kept = await fetch(rail.address + script().path);
  const text = await usual.text();
  t.equal(await kept.text(), text);
  t.match(usual.headers.get('content-type'), 'text/javascript');
  t.match(kept.headers.get('cache-control'), 'immutable');
  t.equal(kept.headers.get('access-control-allow-origin'), '*', 'integrity is checked of another origin too');
  t.equal(script().integrity, `sha384-${createHash('sha384').update(text).digest('base64')}`);
  const size = gzipSync(text, { level: 9 }).length;
  t.ok(size <= 3_072, `${size} bytes`);
});
