import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { changePlan } from '../../../src/recruitment/change_plan.ts';
import { type Caller, eventually, type Json, sql, startRail } from '../../harness.ts';
import { startSearxng } from './search_servers.ts';
import { base, blog, ended, scannedBrand, shop, startWeb } from './web.ts';

const web = await startWeb();
const sites = ['one.test', 'two.test', 'three.test'];
for (const host of sites) web.sites.set(host, { '/': blog(`Blog at ${host}`) });
web.sites.set('shop.test', { '/': shop });
web.sites.set('closed.test', { '/robots.txt': 'User-agent: *\nDisallow: /\n', '/': shop });
web.sites.set('broken.test', { '/': { status: 500 } });
const server = await startSearxng(sites.map((host) => ({ url: web.at(host), title: host })));
const rail = await startRail({
  own: { name_servers: web.name_servers, search_credentials: { searxng: { url: server.url } } },
});

const page = (title: string, text: string) => `<!doctype html><html><title>${title}</title><body>${text}</body></html>`;

async function eventsOf(caller: Caller, pattern: RegExp): Promise<Json[]> {
  const rows = await rail.query<{ type: string; body: string }>(sql`
    select e.type, e.body from webhooks.event e where e.organization_id = ${caller.organization_id} order by e.position`);
  return rows.filter(({ type }) => pattern.test(type)).map(({ body }) => JSON.parse(body));
}
const scansOf = async (caller: Caller, brand_id: string): Promise<Json[]> =>
  (await caller.get(`${base}/scans?brand_id=${brand_id}`)).data;

t.test('creating a brand scans it, free of charge', async (t) => {
  const caller = await rail.organization();
  const asked = server.calls.length;
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test'), competitors: ['rival.test'] });
  const [scan] = await scansOf(caller, brand.id);
  t.match(scan, {
    trigger: 'first',
    state: 'done',
    found: 3,
    visits: 3,
    visits_left: 0,
    search_id: null,
    credit_refunded: false,
  });
  t.match(server.calls[asked]?.query, { q: '"rival.test"' });
  t.match(await eventsOf(caller, /^scan/), [
    {
      type: 'scan.completed',
      data: { scan_id: scan?.id, brand_id: brand.id, trigger: 'first', state: 'done', found: 3 },
    },
  ]);
  t.match((await caller.get(`${base}/plan`)).credits, { spent: 0 });
  t.not((await caller.get(`${base}/brands/${brand.id}`)).last_scan_at, null);
  const { data } = await caller.get(`${base}/prospects?brand_id=${brand.id}&scan_id=${scan?.id}`);
  t.equal(data.length, 3);
  t.match(data[0], { source: 'scan', source_run_id: scan?.id });
});

t.test('says why a scan failed, with the credit back where one was taken', async (t) => {
  const errors = [
    ['gone.test', 'The website could not be reached.'],
    ['broken.test', 'The website could not be reached.'],
    ['closed.test', 'The website forbids visits.'],
  ] as const;
  for (const [host, error] of errors) {
    const caller = await rail.organization();
    const brand = await scannedBrand(caller, { website_url: web.at(host) });
    const { id } = await caller.post(`${base}/scans`, { brand_id: brand.id });
    t.match(await ended(caller, 'scans', id), { state: 'failed', error, credit_refunded: true, trigger: 'manual' });
    t.match(await eventsOf(caller, /^scan/), [
      { type: 'scan.failed', data: { trigger: 'first', error, credit_refunded: false } },
      { type: 'scan.failed', data: { trigger: 'manual', error, credit_refunded: true } },
    ]);
  }
  const caller = await rail.organization();
  server.fault = () => ({ status: 500, body: '' });
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test') });
  server.fault = () => undefined;
  t.match(await scansOf(caller, brand.id), [{ state: 'failed', error: 'No search provider answered.' }]);
});

t.test('a scan that is asked for finds what is new', async (t) => {
  const caller = await rail.organization();
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test'), keywords: ['sourdough'] });
  const { id } = await caller.post(`${base}/scans`, { brand_id: brand.id });
  t.match(await ended(caller, 'scans', id), { state: 'done', found: 0, visits: 3 });
  await caller.patch(`${base}/brands/${brand.id}`, { competitors: ['rival.test'] });
  const again = await caller.post(`${base}/scans`, { brand_id: brand.id });
  t.match(await ended(caller, 'scans', again.id), { state: 'done', found: 3 }, 'links to the new competitor');
  t.match((await caller.get(`${base}/credits`)).data[0], { reason: 'scan', scan_id: again.id });
});

t.test('brands are scanned each week, on their day, once', async (t) => {
  const caller = await rail.organization();
  const brand = await scannedBrand(caller, {
    website_url: web.at('shop.test'),
    scan_weekday: 3,
    default_timezone: 'Asia/Tokyo',
  });
  const off = await scannedBrand(caller, { website_url: web.at('shop.test'), scan_weekday: 3, scan_schedule: 'off' });
  const weekly = async () => (await scansOf(caller, brand.id)).filter(({ trigger }) => trigger === 'weekly').length;
  const ticks = ['2030-01-01T14:05:00Z', '2030-01-01T15:05:00Z', '2030-01-01T16:05:00Z', '2030-01-08T20:05:00Z'];
  for (const [nth, tick] of ticks.entries()) {
    await rail.tick('recruitment/start_weekly_scans', tick);
    await eventually(async () => (await weekly()) === [0, 1, 1, 2][nth], `the scan of ${tick}`);
  }
  const [last] = await scansOf(caller, brand.id);
  t.match(await ended(caller, 'scans', last?.id), { trigger: 'weekly', state: 'done', credit_refunded: false });
  t.equal((await scansOf(caller, off.id)).length, 1);

  await caller.patch(`${base}/plan`, { spending_ceiling_minor: 0 });
  await rail.tick('recruitment/start_weekly_scans', '2030-01-15T20:05:00Z');
  await eventually(async () => (await weekly()) === 3, 'the scan that may spend nothing');
  t.match((await scansOf(caller, brand.id))[0], { state: 'stopped_at_ceiling', found: 0, visits: 0 });
  const organization = { organization_id: caller.organization_id, request_id: null };
  await transaction(rail.store, organization, (tx) => changePlan(tx, 'starter'));
  await rail.tick('recruitment/start_weekly_scans', '2030-01-22T20:05:00Z');
  t.equal(await weekly(), 3);
});

t.test('a reveal finds addresses for a credit, and what is stored is free', async (t) => {
  const caller = await rail.organization();
  web.sites.set('janebakes.com', { '/': `${blog('Jane')}<a href="mailto:jane@janebakes.com">Mail</a>` });
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test') });
  const add = (brand_id: string, host: string) =>
    caller.post(`${base}/prospects`, { brand_id, channel: 'website', url: web.at(host) });
  const settled = async (id: string) => {
    await eventually(
      async () => (await caller.get(`${base}/prospects/${id}/reveal`)).finished_at !== null,
      'the reveal',
    );
    return caller.get(`${base}/prospects/${id}/reveal`);
  };
  const jane = await add(brand.id, 'janebakes.com');
  t.match(await caller.request('GET', `${base}/prospects/${jane.id}/reveal`), { status: 404 });
  t.match(await caller.request('POST', `${base}/prospects/${jane.id}/reveal`), {
    status: 202,
    body: { state: 'queued', credit_taken: true },
  });
  t.match(await settled(jane.id), { state: 'found', addresses: 1, credit_refunded: false });
  const { data } = await caller.get(`${base}/prospects/${jane.id}/emails`);
  t.match(data, [{ email: 'jane@janebakes.com', source: 'page', source_url: web.at('janebakes.com') }]);
  t.match(await caller.post(`${base}/prospects/${jane.id}/reveal`), {
    state: 'found',
    addresses: 1,
    credit_taken: false,
  });

  const { data: found } = await caller.get(`${base}/prospects?brand_id=${brand.id}&source=scan`);
  const nobody = found[0];
  await caller.request('POST', `${base}/prospects/${nobody.id}/reveal`).catch(() => {});
  t.match(await settled(nobody.id), { state: 'not_found', credit_refunded: true });
  const gone = await add(brand.id, 'gone.test');
  await caller.post(`${base}/prospects/${gone.id}/reveal`);
  t.match(await settled(gone.id), {
    state: 'failed',
    reason: 'The website could not be reached: its name has no address.',
    credit_refunded: true,
  });

  const other = await scannedBrand(caller, { website_url: web.at('shop.test') });
  const same = await add(other.id, 'janebakes.com');
  t.match(await caller.post(`${base}/prospects/${same.id}/reveal`), { state: 'found', credit_taken: false });
  t.match((await caller.get(`${base}/plan`)).credits, { spent: 3, refunded: 2 });
  t.match(await eventsOf(caller, /^email/), [
    { data: { prospect_id: jane.id, source: 'page', addresses: 1 } },
    { data: { prospect_id: same.id, source: 'stored', addresses: 1 } },
  ]);
  t.match(await caller.request('POST', `${base}/prospects/sample_fdi_01/reveal`), { status: 409 });
});

t.test('a reveal takes no address of a platform, a host, or a seller of domains', async (t) => {
  const caller = await rail.organization();
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test') });
  const host = '<a href="mailto:webmaster@hosting-company.com">webmaster@hosting-company.com</a>';
  const sites: [string, Record<string, string>, string, number, RegExp | null][] = [
    [
      'parked-bakes.com',
      { '/': page('parked-bakes.com', '<p>This domain is for sale. sales@domainbroker.com</p>') },
      'not_found',
      0,
      /parked or for sale/,
    ],
    [
      'kaufen-bakes.com',
      { '/': page('Domain', '<h1>Diese Domain steht zum Verkauf</h1>info@broker.de') },
      'not_found',
      0,
      /parked or for sale/,
    ],
    [
      'default-bakes.com',
      { '/': page('Welcome to nginx!', '<h1>Welcome to nginx!</h1>admin@hosting-company.com') },
      'not_found',
      0,
      /not set up/,
    ],
    [
      'lost-bakes.com',
      { '/': page('Oops', `<h1>Page <b>not found</b></h1>Ask ${host}`) },
      'not_found',
      0,
      /no such page/,
    ],
    [
      'soft-bakes.com',
      { '/': blog('Soft'), '/contact': page('Page not found', host), '/about': page('Error 404', host) },
      'not_found',
      0,
      /no usable address/,
    ],
    // The same of whatever is asked for, without a word that says so.
    [
      'same-bakes.com',
      { '/': blog('Same'), '/contact': page('Hello', 'ann@agency.com'), '/about': page('Hello', 'ann@agency.com') },
      'not_found',
      0,
      null,
    ],
    [
      'made-bakes.com',
      { '/': page('Made', 'Site by webmaster@hosting-company.com, support@hosting-company.com') },
      'not_found',
      0,
      null,
    ],
    [
      'agency-bakes.com',
      { '/': page('Ann', 'I am with <a href="mailto:ann@agency.com">my agency</a>') },
      'found',
      1,
      null,
    ],
    ['ann-bakes.com', { '/': page('Ann', 'Write to support@annbakes.org') }, 'found', 1, null],
  ];
  for (const [name, pages, state, addresses, reason] of sites) {
    web.sites.set(name, pages);
    const { id } = await caller.post(`${base}/prospects`, {
      brand_id: brand.id,
      channel: 'website',
      url: web.at(name),
    });
    await caller.post(`${base}/prospects/${id}/reveal`);
    const read = () => caller.get(`${base}/prospects/${id}/reveal`);
    await eventually(async () => (await read()).finished_at !== null, name);
    t.match(
      await read(),
      { state, addresses, credit_refunded: state !== 'found', ...(reason ? { reason } : {}) },
      name,
    );
  }
  web.sites.set('linktr.ee', {
    '/': page('Linktree', 'support@linktr.ee'),
    '/ann': page('Ann', 'support@linktr.ee <a href="/contact">Contact</a> <a href="mailto:ann@annbakes.org">Mail</a>'),
    '/contact': page('Contact', 'bob@linktr.ee'),
  });
  const { id } = await caller.post(`${base}/prospects`, {
    brand_id: brand.id,
    channel: 'website',
    url: web.at('linktr.ee', '/ann'),
  });
  await caller.post(`${base}/prospects/${id}/reveal`);
  await eventually(async () => (await caller.get(`${base}/prospects/${id}/reveal`)).finished_at !== null, 'linktr.ee');
  t.same(
    (await caller.get(`${base}/prospects/${id}/emails`)).data.map(({ email }: Json) => email),
    ['ann@annbakes.org'],
  );
  t.notOk(web.asked.includes('linktr.ee/') || web.asked.includes('linktr.ee/contact'));
});

t.test('a reveal of one of many at a site that no list names reads none of its own pages', async (t) => {
  const caller = await rail.organization();
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test') });
  const contact = '<a href="/contact">Contact</a>';
  const own = { '/': page('Home', `bob@owner.com ${contact}`), '/contact': page('Contact', 'bob@owner.com') };
  web.sites.set('people.academy.org', {
    ...own,
    '/~ann/': page('Ann', `ann@academy.org, office@academy.org ${contact} <a href="/~ann/about.html">About me</a>`),
    '/~ann/about.html': page('About', 'annlee@gmail.com'),
  });
  web.sites.set('crowd.org', {
    ...own,
    '/@ann': page('Ann', `staffer@crowd.org <a href="mailto:ann@annbakes.org">Mail</a> ${contact}`),
    '/@eve': { status: 302, location: '/' },
  });
  const revealed = async (url: string) => {
    const { id, key } = await caller.post(`${base}/prospects`, { brand_id: brand.id, channel: 'website', url });
    await caller.post(`${base}/prospects/${id}/reveal`);
    await eventually(async () => (await caller.get(`${base}/prospects/${id}/reveal`)).finished_at !== null, url);
    const { data } = await caller.get(`${base}/prospects/${id}/emails`);
    const { reason } = await caller.get(`${base}/prospects/${id}/reveal`);
    return { key, emails: data.map(({ email }: Json) => email).sort(), reason };
  };
  t.same(await revealed(web.at('people.academy.org', '/~ann/')), {
    ...{ key: 'ann._tilde.people.academy.org', emails: ['ann@academy.org', 'annlee@gmail.com'], reason: null },
  });
  t.same(await revealed(web.at('crowd.org', '/@ann')), {
    ...{ key: 'ann._at.crowd.org', emails: ['ann@annbakes.org'], reason: null },
  });
  t.match(await revealed(web.at('crowd.org', '/@eve')), {
    key: 'eve._at.crowd.org',
    emails: [],
    reason: /shares with/,
  });
  t.notOk(web.asked.some((path) => /\.org\/contact$/.test(path)));
});

t.test('a reveal does not count addresses that are barred', async (t) => {
  const caller = await rail.organization();
  web.sites.set('barredbakes.com', { '/': `${blog('Bo')}<a href="mailto:bo@barredbakes.com">Mail</a>` });
  const brand = await scannedBrand(caller, { website_url: web.at('shop.test') });
  await caller.post(`${base}/do_not_contact`, { kind: 'address', email: 'bo@barredbakes.com' });
  const bo = await caller.post(`${base}/prospects`, {
    ...{ brand_id: brand.id, channel: 'website', url: web.at('barredbakes.com') },
  });
  for (const attempt of [1, 2]) {
    await caller.post(`${base}/prospects/${bo.id}/reveal`);
    const reveal = () => caller.get(`${base}/prospects/${bo.id}/reveal`);
    await eventually(async () => (await reveal()).finished_at !== null, `reveal ${attempt}`);
    t.match(await reveal(), { state: 'not_found', addresses: 0, credit_taken: true, credit_refunded: true });
  }
});
