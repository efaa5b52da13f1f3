import t from 'tap';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { changePlan } from '../../../src/recruitment/change_plan.ts';
import { spendCredit } from '../../../src/recruitment/plan/credit.ts';
import type { PlanName } from '../../../src/recruitment/plan/limits.ts';
import type { Run } from '../../../src/recruitment/runs/run.ts';
import { reserve } from '../../../src/recruitment/runs/spending.ts';
import {
  awayFromMidnight,
  type Caller,
  eventually,
  type Json,
  log,
  sql,
  startRail,
  startReceiver,
  startWorker,
} from '../../harness.ts';
import {
  brave_key,
  type Listed,
  type SearchServer,
  startBrave,
  startSearxng,
  startYoutube,
  youtube_key,
} from './search_servers.ts';
import { base, blog, ended, scanBehind, scannedBrand, shop, startWeb } from './web.ts';

const web = await startWeb();
const listed: Listed[] = Array.from({ length: 25 }, (_, nth) => ({
  ...{ url: web.at(`blog${nth}.test`, '/review'), title: `Blog ${nth}`, description: 'Sourdough' },
}));
web.sites.set('shop.test', { '/': shop });
for (let nth = 0; nth < 25; nth++) web.sites.set(`blog${nth}.test`, { '/review': blog(`Blog ${nth}`) });
const many: Listed[] = Array.from({ length: 300 }, (_, nth) => ({ url: `https://many${nth}.test/` }));
const [brave, youtube] = await Promise.all([
  startBrave(many),
  startYoutube([
    ...Array.from({ length: 60 }, (_, nth) => ({ id: `UC${String(nth).padStart(22, 'y')}`, title: `Channel ${nth}` })),
    {
      ...{ id: `UC${'z'.repeat(22)}`, handle: '@breadwithada', title: 'Bread with Ada' },
      description: 'Bread. Business: info@breadwithada.com, or ada [at] breadwithada [dot] com. Not you@example.com.',
    },
  ]),
]);
const rail = await startRail({
  own: { name_servers: web.name_servers, provider_urls: { brave: brave.url, youtube: youtube.url } },
});

const within = (caller: Caller, work: Parameters<typeof transaction<unknown>>[2]) =>
  transaction(rail.store, { organization_id: caller.organization_id, request_id: null }, work);
const onPlan = (caller: Caller, name: PlanName) => within(caller, (tx) => changePlan(tx, name));
const put = (caller: Caller, name: string, credentials: Json) =>
  caller.request('PUT', `${base}/search_providers/${name}`, { credentials });

/** An organization with a brand, and a server that its searches ask. */
async function team(pages: Listed[] = listed): Promise<{ caller: Caller; brand_id: string; server: SearchServer }> {
  const [caller, server] = await Promise.all([rail.organization(), startSearxng(pages)]);
  const { id: brand_id } = await scannedBrand(caller, {
    website_url: web.at('shop.test'),
    competitors: ['rival.test'],
  });
  await put(caller, 'searxng', { url: server.url });
  server.calls.length = 0;
  return { caller, brand_id, server };
}

async function eventsOf(caller: Caller, pattern: RegExp): Promise<Json[]> {
  const rows = await rail.query<{ type: string; body: string }>(sql`
    select e.type, e.body from webhooks.event e where e.organization_id = ${caller.organization_id} order by e.position`);
  return rows.filter(({ type }) => pattern.test(type)).map(({ body }) => JSON.parse(body));
}

t.test('a search makes prospects of what it finds, tells it once, and a scan visits them', async (t) => {
  const { caller, brand_id, server } = await team();
  const receiver = await startReceiver();
  await caller.post(`${base}/webhook_endpoints`, {
    url: receiver.url,
    type: 'live',
    event_types: ['search.completed', 'scan.completed'],
  });
  const search = await caller.post(`${base}/searches`, {
    brand_id,
    search_type: 'keyword',
    query: 'sourdough ovens',
    languages: ['en'],
  });
  t.match(search, {
    object: 'search',
    state: 'queued',
    query: 'sourdough ovens',
    max_results: 50,
    found: 0,
    credit_refunded: false,
  });
  t.match(await ended(caller, 'searches', search.id), {
    state: 'done',
    found: 25,
    results_count: 25,
    spent_minor: 0,
    error: null,
  });
  const scan = await scanBehind(caller, search.id);
  t.match(scan, { trigger: 'search', search_id: search.id, state: 'done', visits: 25, visits_left: 0, found: 25 });
  const told = await receiver.until(2);
  t.match(
    told.map(({ body }) => [body.type, body.data]),
    [
      ['search.completed', { search_id: search.id, brand_id, search_type: 'keyword', state: 'done', found: 25 }],
      ['scan.completed', { scan_id: scan.id, brand_id, trigger: 'search', state: 'done', found: 25 }],
    ],
  );
  t.equal(server.calls[0]?.query.language, 'en');
  const { data } = await caller.get(`${base}/searches/${search.id}/results?limit=100`);
  t.equal(data.length, 25);
  t.match(data[0], { outcome: 'new', channel: 'website', key: 'blog0.test', provider: 'searxng', title: 'Blog 0' });
  const prospect = await caller.get(`${base}/prospects/${data[0].prospect_id}`);
  t.match(prospect, {
    source: 'search',
    source_run_id: search.id,
    stage: 'found',
    language_code: 'en',
    key: 'blog0.test',
  });
  t.same([...new Set(prospect.evidence.map(({ kind }: Json) => kind))].sort(), [
    'affiliate_network',
    'competitor_link',
  ]);
  t.ok(prospect.score > 0);
  t.match((await caller.get(`${base}/credits`)).data[0], {
    kind: 'spend',
    reason: 'search',
    search_id: search.id,
    amount: -1,
  });
  t.equal((await eventsOf(caller, /^search/)).length, 1);

  const again = await caller.post(`${base}/searches`, {
    brand_id,
    search_type: 'keyword',
    query: 'sourdough',
    providers: ['index'],
  });
  t.match(
    await ended(caller, 'searches', again.id),
    { state: 'done', found: 0, results_count: 25 },
    'the pages are in the index now',
  );
  t.match(await scanBehind(caller, again.id), { found: 0 }, 'and nothing about them is new');
});

t.test('a search that no provider can start fails, with its credit back', async (t) => {
  const { caller, brand_id, server } = await team();
  server.fault = () => ({ status: 503, body: '' });
  const { id } = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  t.match(await ended(caller, 'searches', id), {
    state: 'failed',
    error: 'No search provider answered.',
    credit_refunded: true,
  });
  t.match(await eventsOf(caller, /^search/), [
    { type: 'search.failed', data: { search_id: id, credit_refunded: true } },
  ]);
  t.match((await caller.get(`${base}/plan`)).credits, { spent: 1, refunded: 1 });
});

t.test('a search says that no provider is set up, and refuses providers that it could not ask', async (t) => {
  const caller = await rail.organization();
  const { id: brand_id } = await caller.post(`${base}/brands`, { name: 'Shop', website_url: web.at('shop.test') });
  const asked = { brand_id, search_type: 'keyword', query: 'bread' };
  const { id } = await caller.post(`${base}/searches`, asked);
  const failed = { state: 'failed', error: /^No search provider is set up\. Set credentials with PUT/, scan_id: null };
  t.match(await ended(caller, 'searches', id), failed);
  const refused = [
    { ...asked, providers: ['brave'] },
    { ...asked, providers: ['url_list'] },
    { ...asked, search_type: 'url_list', query: web.at('shop.test'), providers: ['url_list', 'index'] },
  ];
  for (const body of refused) {
    t.match(await caller.request('POST', `${base}/searches`, body), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: 'providers' } },
    });
  }
  const one_url = {
    ...asked,
    search_type: 'url_list',
    query: web.at('blog1.test', '/review'),
    providers: ['url_list'],
  };
  const listed = await caller.post(`${base}/searches`, one_url);
  t.match(await ended(caller, 'searches', listed.id), { state: 'done', found: 1 });
  await scanBehind(caller, listed.id);
});

t.test('a provider that dies amid a search leaves what there is', async (t) => {
  const { caller, brand_id, server } = await team();
  server.fault = (_, number) => (number > 1 ? 'reset' : undefined);
  const { id } = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  t.match(await ended(caller, 'searches', id), { state: 'done', found: 10 });
  server.fault = (_, number) =>
    number === server.calls.length ? { status: 429, headers: { 'retry-after': '0' }, body: '' } : undefined;
  const refused = await caller.post(`${base}/searches`, {
    ...{ brand_id, search_type: 'keyword', query: 'bread', providers: ['searxng'] },
  });
  t.match(await ended(caller, 'searches', refused.id), { state: 'failed' });
});

t.test('a search stops at its ceiling, to the page', async (t) => {
  const { caller, brand_id } = await team([]);
  await put(caller, 'brave', { api_key: brave_key });
  const asked = { brand_id, search_type: 'keyword', query: 'ovens', providers: ['brave'], max_results: 500 };
  const { id } = await caller.post(`${base}/searches`, { ...asked, ceiling_minor: 1 });
  t.match(await ended(caller, 'searches', id), { state: 'stopped_at_ceiling', results_count: 40, spent_minor: 1 });
  const { id: none } = await caller.post(`${base}/searches`, { ...asked, ceiling_minor: 0 });
  t.match(await ended(caller, 'searches', none), {
    state: 'stopped_at_ceiling',
    results_count: 0,
    spent_minor: 0,
    credit_refunded: false,
  });
  t.match(await eventsOf(caller, /^search/), [
    { data: { state: 'stopped_at_ceiling', found: 40 } },
    { data: { found: 0 } },
  ]);
  t.match(await caller.get(`${base}/plan`), { spent_minor: 1 });
});

t.test('a reservation that waited for another one is checked by what that has left', async (t) => {
  const { caller } = await team([]);
  await caller.patch(`${base}/plan`, { spending_ceiling_minor: 1 });
  const run = { id: 'none', ceiling_minor: null, spent_micros: 0 } as unknown as Run;
  const half_a_cent = 5_000;
  const opening = { organization_id: caller.organization_id, request_id: null };
  const reserveOne = () => transaction(rail.store, opening, (tx) => reserve(tx, run, half_a_cent));
  t.equal(await reserveOne(), true);
  let other: Promise<boolean> | undefined;
  await transaction(rail.store, opening, async (tx) => {
    t.equal(await reserve(tx, run, half_a_cent), true);
    other = reserveOne();
    await eventually(async () => (await rail.waiting()) > 0, 'the other reservation to wait');
  });
  t.equal(await other, false);
  t.match(await caller.get(`${base}/plan`), { spent_minor: 1 });
  // No page was asked for by it.
  await rail.query(sql`delete from recruitment.spending where organization_id = ${caller.organization_id}`);
});

t.test('the ceiling of the plan is never passed, also with five workers', async (t) => {
  const { caller, brand_id } = await team([]);
  await put(caller, 'brave', { api_key: brave_key });
  const workers = Array.from({ length: 4 }, () =>
    startWorker({ url: rail.url, store: rail.store, services: rail.services, concurrency: 2, log }),
  );
  await Promise.all(workers.map(({ ready }) => ready));
  await caller.patch(`${base}/plan`, { spending_ceiling_minor: 5 });
  const before = brave.calls.length;
  const queries = Array.from({ length: 6 }, (_, nth) => ({ query: `ovens ${nth}`, brand_id, search_type: 'keyword' }));
  const made = await Promise.all(
    queries.map((one) => caller.post(`${base}/searches`, { ...one, providers: ['brave'], max_results: 500 })),
  );
  for (const { id } of made) t.match(await ended(caller, 'searches', id), { state: 'stopped_at_ceiling' });
  t.equal(brave.calls.length - before, 10, 'half a cent each');
  t.match(await caller.get(`${base}/plan`), { spent_minor: 5, spending_ceiling_minor: 5 });
  const asked = { brand_id, search_type: 'keyword', query: 'ovens' };
  t.match(await caller.request('POST', `${base}/searches`, asked), {
    status: 402,
    body: { error: { code: 'plan_limit_reached' } },
  });
  t.match(await caller.request('POST', `${base}/scans`, { brand_id }), { status: 402 });
  await Promise.all(workers.map(({ stop }) => stop()));
});

t.test('cancelling tells nothing, and gives the credit back while the search is queued', async (t) => {
  const { caller, brand_id, server } = await team();
  const opened = Promise.withResolvers<undefined>();
  server.fault = () => opened.promise;
  const called = server.called(1);
  const { id } = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  await called;
  t.match(await caller.post(`${base}/searches/${id}/cancel`), { state: 'cancelled', credit_refunded: true });
  t.match(await caller.post(`${base}/searches/${id}/cancel`), { state: 'cancelled' });
  opened.resolve(undefined);

  const second = Promise.withResolvers<undefined>();
  const first_calls = server.calls.length;
  server.fault = (_, number) => (number > first_calls + 1 ? second.promise : undefined);
  const running = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  await server.called(first_calls + 2);
  t.match(await caller.post(`${base}/searches/${running.id}/cancel`), {
    state: 'cancelled',
    credit_refunded: false,
    found: 10,
  });
  second.resolve(undefined);
  server.fault = () => undefined;
  const done = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
  await ended(caller, 'searches', done.id);
  t.match(await caller.request('POST', `${base}/searches/${done.id}/cancel`), { status: 409 });
  t.match(await eventsOf(caller, /^search/), [{ data: { search_id: done.id } }]);
});

t.test('20 searches at once with 10 credits make 10, and the plan limits those of a month', async (t) => {
  const { caller, brand_id } = await team();
  await onPlan(caller, 'starter');
  for (let nth = 0; nth < 30; nth++) await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: 'fdi_1' }));
  const asked = { brand_id, search_type: 'url_list', query: web.at('blog1.test', '/review') };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => caller.request('POST', `${base}/searches`, asked)),
  );
  const made = answers.filter(({ status }) => status === 202);
  t.equal(made.length, 10);
  for (const { body } of answers.filter(({ status }) => status !== 202))
    t.match(body, { error: { code: 'no_credits' } });
  for (const { body } of made) await ended(caller, 'searches', body.id);
  t.match((await caller.get(`${base}/plan`)).credits, { balance: 0 });

  const other = await team();
  await onPlan(other.caller, 'starter');
  const tried = Array.from({ length: 25 }, () =>
    other.caller.request('POST', `${base}/searches`, { ...asked, brand_id: other.brand_id }),
  );
  const limited = await Promise.all(tried);
  t.equal(limited.filter(({ status }) => status === 202).length, 20);
  t.match(limited.find(({ status }) => status !== 202)?.body, { error: { code: 'plan_limit_reached' } });
});

t.test('filters say why a result was skipped', async (t) => {
  const urls = [
    web.at('blog0.test', '/review'),
    web.at('blog0.test', '/other'),
    web.at('blog1.test', '/'),
    web.at('blog2.test', '/review'),
    web.at('blog3.test', '/review'),
    web.at('blog4.test', '/review'),
    'https://blog5.test/review',
    web.at('shop.test', '/oven'),
    'https://rival.test/oven',
    'https://www.youtube.com/@sourdough',
    'https://192.0.2.1/',
  ];
  const { caller, brand_id } = await team();
  const known = await caller.post(`${base}/prospects/bulk`, {}).catch(() => undefined);
  t.equal(known, undefined);
  for (const [key, change] of [
    ['blog2.test', sql`unsubscribed_at = now()`],
    ['blog3.test', sql`last_sent_at = now() - interval '3 days'`],
    ['blog4.test', sql`sent = 1, stage = 'contacted'`],
  ] as const) {
    const { id } = await caller.post(`${base}/prospects`, { brand_id, channel: 'website', key });
    await rail.query(sql`update recruitment.prospect set ${change} where id = ${id}`);
  }
  const enrolled = await caller.post(`${base}/prospects`, { brand_id, channel: 'website', key: 'blog5.test' });
  const campaign = await caller.post(`${base}/campaigns`, { brand_id, name: 'Blogs' });
  await caller.post(`${base}/campaigns/${campaign.id}/prospects`, { prospect_ids: [enrolled.id] });
  const { id } = await caller.post(`${base}/searches`, {
    ...{ brand_id, search_type: 'url_list', query: urls.join('\n'), channels: ['website'] },
    filters: {
      ...{ one_per_domain: true, skip_contacted_days: 7, skip_unsubscribed: true },
      ...{ skip_in_campaigns: true, skip_homepages: true },
    },
  });
  t.match(await ended(caller, 'searches', id), { state: 'done', found: 1, results_count: 1 });
  const { data } = await caller.get(`${base}/searches/${id}/results`);
  t.same(
    data.map(({ skipped_because }: Json) => skipped_because),
    [
      ...[null, 'same_domain', 'homepage', 'unsubscribed', 'contacted', 'in_campaign', 'in_campaign', 'own_site'],
      ...['own_site', 'other_channel', 'not_a_prospect'],
    ],
  );
  await scanBehind(caller, id);
});

t.test('finds channels by YouTube within the daily quota of its key', async (t) => {
  await awayFromMidnight('America/Los_Angeles');
  const { caller, brand_id } = await team();
  await put(caller, 'youtube', { api_key: youtube_key, daily_quota: 150 });
  const asked = {
    brand_id,
    search_type: 'channel',
    channels: ['youtube'],
    query: 'bread',
    providers: ['youtube'],
    max_results: 500,
  };
  const { id } = await caller.post(`${base}/searches`, asked);
  t.match(await ended(caller, 'searches', id), { state: 'done', found: 50 }, 'a page takes 101 units');
  const next = await caller.post(`${base}/searches`, asked);
  t.match(await ended(caller, 'searches', next.id), { state: 'failed' });
});

t.test('a reveal reads what a YouTube channel says of itself, where a key is set', async (t) => {
  const { caller, brand_id } = await team();
  await put(caller, 'youtube', { api_key: youtube_key });
  web.sites.set('breadwithada.com', { '/': shop });
  for (const key of [`UC${'z'.repeat(22)}`, 'breadwithada']) {
    const { id } = await caller.post(`${base}/prospects`, { brand_id, channel: 'youtube', key });
    await caller.post(`${base}/prospects/${id}/reveal`);
    const reveal = () => caller.get(`${base}/prospects/${id}/reveal`);
    await eventually(async () => (await reveal()).finished_at !== null, 'the reveal');
    t.match(await reveal(), { state: 'found', addresses: 2, pages: 0 });
    t.match((await caller.get(`${base}/prospects/${id}/emails`)).data, [
      { email: 'ada@breadwithada.com', source: 'channel_api', source_url: /^https:\/\/www\.youtube\.com\// },
      { email: 'info@breadwithada.com', source: 'channel_api' },
    ]);
  }
  t.match(await eventsOf(caller, /^email/), [
    { data: { source: 'channel_api', addresses: 2 } },
    { data: { source: 'channel_api', addresses: 2 } },
  ]);
});

t.test('looks for others like a prospect, and for who links to a competitor', async (t) => {
  const { caller, brand_id, server } = await team();
  const first = await caller.post(`${base}/searches`, {
    brand_id,
    search_type: 'competitor',
    competitor_domain: 'rival.test',
    max_results: 5,
  });
  await ended(caller, 'searches', first.id);
  await scanBehind(caller, first.id);
  t.equal(server.calls[0]?.query.q, '"rival.test"');
  const linking = await caller.post(`${base}/searches`, {
    brand_id,
    search_type: 'competitor',
    competitor_domain: 'rival.test',
    providers: ['index'],
  });
  t.match(await ended(caller, 'searches', linking.id), { results_count: 5 });
  const { data } = await caller.get(`${base}/prospects?brand_id=${brand_id}`);
  server.calls.length = 0;
  const alike = await caller.post(`${base}/searches`, {
    brand_id,
    search_type: 'lookalike',
    like_prospect_id: data[0].id,
    providers: ['searxng'],
  });
  t.match(await ended(caller, 'searches', alike.id), { state: 'done', like_prospect_id: data[0].id });
  t.match(server.calls[0]?.query.q, /ourdough/);
});

t.test('refuses what a search cannot be', async (t) => {
  const { caller, brand_id } = await team();
  const refusal = async (body: Json) => {
    const { status, body: answer } = await caller.request('POST', `${base}/searches`, { brand_id, ...body });
    return [status, answer.error.code, answer.error.param];
  };
  t.match(await caller.request('POST', `${base}/searches`, { brand_id, search_type: 'keyword' }), {
    body: { error: { message: "'query' is required for the search type 'keyword'." } },
  });
  t.same(await refusal({ search_type: 'keyword' }), [400, 'missing_parameter', 'query']);
  t.same(await refusal({ search_type: 'competitor' }), [400, 'missing_parameter', 'competitor_domain']);
  t.same(await refusal({ search_type: 'lookalike' }), [400, 'missing_parameter', 'like_prospect_id']);
  t.same(await refusal({ search_type: 'channel' }), [400, 'missing_parameter', 'channels']);
  t.same(await refusal({ search_type: 'url_list', query: 'ftp://x' }), [400, 'invalid_parameter', 'query']);
  t.same(await refusal({ search_type: 'keyword', query: 'x'.repeat(501) }), [400, 'invalid_parameter', 'query']);
  t.same(await refusal({ search_type: 'keyword', query: 'x', max_results: 501 }), [
    400,
    'invalid_parameter',
    'max_results',
  ]);
  for (const [search_type, query, field] of [
    ['keyword', 'bread', 'competitor_domain'],
    ['lookalike', undefined, 'competitor_domain'],
    ['url_list', 'https://a.test', 'like_prospect_id'],
  ] as const) {
    const needed = search_type === 'lookalike' ? { like_prospect_id: 'fdi_1' } : {};
    const body = { search_type, ...(query && { query }), ...needed, [field]: 'rival.test' };
    t.same(await refusal(body), [400, 'invalid_parameter', field], search_type);
  }
  t.same(await refusal({ search_type: 'keyword', query: 'x', misspelt: 1 }), [400, 'unknown_parameter', 'misspelt']);
  t.match((await caller.get(`${base}/plan`)).credits, { spent: 0 });
});

t.test('two tasks on one search, and a cancel against its end, leave one outcome', async (t) => {
  for (let round = 0; round < 5; round++) {
    const { caller, brand_id, server } = await team();
    const { id } = await caller.post(`${base}/searches`, { brand_id, search_type: 'keyword', query: 'bread' });
    const { organization_id } = caller;
    await within(caller, async (tx) => tx.enqueue('recruitment/run_search', { organization_id, id }));
    if (round % 2 === 1) await server.called(round);
    const cancelled = round % 2 === 1 ? await caller.request('POST', `${base}/searches/${id}/cancel`) : undefined;
    const { state } = await ended(caller, 'searches', id);
    t.equal((await eventsOf(caller, /^search/)).length, state === 'cancelled' ? 0 : 1);
    if (cancelled) t.equal(cancelled.status, state === 'cancelled' ? 200 : 409);
    else t.equal(server.calls.length, 4, 'no page was asked for twice');
  }
});

t.test('an unknown brand is a 404, and a page of an erased person leaves no trace', async (t) => {
  const { caller, brand_id } = await team();
  const asked = { search_type: 'url_list', query: web.at('blog7.test', '/review') };
  t.match(await caller.request('POST', `${base}/searches`, { ...asked, brand_id: 'fbr_x' }), {
    status: 404,
    body: { error: { param: 'brand_id' } },
  });
  const { id } = await caller.post(`${base}/searches`, { ...asked, brand_id });
  await ended(caller, 'searches', id);
  await scanBehind(caller, id);
  const { data } = await caller.get(`${base}/searches/${id}/results`);
  await caller.delete(`${base}/prospects/${data[0].prospect_id}`);
  t.same((await caller.get(`${base}/searches/${id}/results`)).data, []);
  const again = await caller.post(`${base}/searches`, { ...asked, brand_id });
  t.match(await ended(caller, 'searches', again.id), { found: 0, results_count: 0 });
  const [left] = (await caller.get(`${base}/searches/${again.id}/results`)).data;
  t.notOk(JSON.stringify(left).includes('blog7'));
  t.equal((await caller.get(`${base}/searches/${id}`)).query, 'urn:rail:erased');
  const elsewhere = await caller.post(`${base}/searches`, { ...asked, brand_id, query: 'https://127.0.0.1/a' });
  await ended(caller, 'searches', elsewhere.id);
  const [no_prospect] = (await caller.get(`${base}/searches/${elsewhere.id}/results`)).data;
  const shown = ({ id: _, search_id: __, url, created_at: ___, ...rest }: Json) => ({ ...rest, url: url.slice(0, 17) });
  t.same(shown(left), shown(no_prospect), 'told like a URL that names no prospect');
  const runs = await rail.query<{ steps: string }>(sql`
    select steps::text || request::text as steps from recruitment.run where id = ${id}`);
  t.notMatch(runs[0]?.steps, /blog7/);
  const pages = await rail.query(
    sql`select url from recruitment.page where organization_id = ${caller.organization_id} and key = 'blog7.test'`,
  );
  t.same(pages, []);
});
