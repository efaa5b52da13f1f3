import t, { type Test } from 'tap';
import { Agent } from 'undici';
import { createPinnedAgent } from '../../../src/core/net/agent.ts';
import type {
  ProviderContext,
  ProviderFailure,
  ProviderName,
  ProviderQuery,
  SearchPage,
} from '../../../src/recruitment/search_providers/provider.ts';
import { providers } from '../../../src/recruitment/search_providers/providers.ts';
import {
  brave_key,
  braveTooMany,
  type Listed,
  startBrave,
  startSearxng,
  startYoutube,
  youtube_key,
  youtubeError,
} from './search_servers.ts';

const dispatcher = new Agent();
t.teardown(() => dispatcher.destroy());

const query: ProviderQuery = { text: 'sourdough blog', country: null, language: null };
const listed: Listed[] = Array.from({ length: 45 }, (_, nth) => ({
  ...{ url: `https://site${nth}.example.com/`, title: `Site ${nth}`, description: 'About bread' },
}));
const channels = Array.from({ length: 60 }, (_, nth) => ({
  ...{ id: `UC${String(nth).padStart(22, 'x')}`, title: `Channel ${nth}`, country: 'DE' },
  ...(nth === 0 ? {} : { subscribers: String(nth * 1_000) }),
}));

const contextOf = (url: string, given: Partial<ProviderContext> = {}): ProviderContext => ({
  ...{
    credentials: { api_key: brave_key },
    url,
    dispatcher,
    cut_off: new AbortController().signal,
    timeout_ms: 20_000,
  },
  ...given,
});

const all = (name: ProviderName, context: ProviderContext, from?: string, asked = query): Promise<SearchPage[]> =>
  Array.fromAsync(providers[name].search(asked, context, from));

async function failsWith(t: Test, calling: Promise<unknown>, kind: string): Promise<ProviderFailure> {
  const error = await calling.then(
    () => t.fail(`expected ${kind}`),
    (failure: unknown) => failure,
  );
  t.match(error, { name: 'ProviderFailure', kind });
  return error as ProviderFailure;
}

t.test('pages through SearXNG until a page is empty, in the language that is asked for', async (t) => {
  const server = await startSearxng(listed);
  const pages = await all('searxng', contextOf(server.url), undefined, { ...query, language: 'de', country: 'AT' });
  t.same(
    pages.map(({ hits }) => hits.length),
    [10, 10, 10, 10, 5, 0],
  );
  t.same(pages[0]?.hits[0], { url: 'https://site0.example.com/', title: 'Site 0', description: 'About bread' });
  t.match(server.calls[1]?.query, { q: 'sourdough blog', format: 'json', pageno: '2', language: 'de-AT' });
  t.same((await all('searxng', contextOf(server.url), '6')).length, 1, 'and goes on where another left off');
});

t.test('calls only when a page is asked for', async (t) => {
  const server = await startSearxng(listed);
  const pages = providers.searxng.search(query, contextOf(server.url))[Symbol.asyncIterator]();
  t.equal(server.calls.length, 0);
  await pages.next();
  t.equal(server.calls.length, 1);
});

t.test('says what SearXNG refuses', async (t) => {
  const server = await startSearxng(listed);
  server.fault = () => ({ status: 403, body: 'Forbidden' });
  t.match((await failsWith(t, all('searxng', contextOf(server.url)), 'refused')).message, /search\.formats/);
  server.fault = () => ({ status: 429, headers: { 'retry-after': '7' }, body: '' });
  t.equal((await failsWith(t, all('searxng', contextOf(server.url)), 'rate_limited')).retry_after_ms, 7_000);
  server.fault = () => ({ status: 200, body: { results: [], unresponsive_engines: [['bing', 'timeout']] } });
  await failsWith(t, all('searxng', contextOf(server.url)), 'unavailable');
});

t.test('pages through Brave by twenty, up to its tenth page', async (t) => {
  const server = await startBrave(listed);
  const pages = await all('brave', contextOf(server.url), undefined, { ...query, language: 'en', country: 'US' });
  t.same(
    pages.map(({ hits, next }) => [hits.length, next]),
    [
      [20, '1'],
      [20, '2'],
      [5, null],
    ],
  );
  t.match(server.calls[0], {
    query: { q: 'sourdough blog', count: '20', offset: '0', country: 'US', search_lang: 'en' },
    headers: { 'x-subscription-token': brave_key },
  });
  t.notMatch(server.calls[0]?.query, { api_key: brave_key });
  const many = await startBrave(Array.from({ length: 500 }, (_, nth) => ({ url: `https://many${nth}.example.com/` })));
  t.equal((await all('brave', contextOf(many.url))).length, 10);
  const long = { ...query, text: `${'sourdough '.repeat(60)}end` };
  t.equal((await all('brave', contextOf(server.url), '2', long)).length, 1, 'a long query is cut to what it takes');
});

t.test("tells Brave's rate of a second from its quota of a month", async (t) => {
  const server = await startBrave(listed);
  server.fault = () => braveTooMany('0, 1400', '1, 1419704');
  t.equal((await failsWith(t, all('brave', contextOf(server.url)), 'rate_limited')).retry_after_ms, 1_000);
  server.fault = () => braveTooMany('0, 0', '1, 1419704');
  t.equal((await failsWith(t, all('brave', contextOf(server.url)), 'quota_exhausted')).retry_after_ms, 1_419_704_000);
  server.fault = () => undefined;
  const refused = await failsWith(
    t,
    all('brave', contextOf(server.url, { credentials: { api_key: 'other' } })),
    'refused',
  );
  t.notOk(refused.message.includes('other'), 'the key is in no message');
  await t.resolves(providers.brave.check(contextOf(server.url)));
});

t.test('finds and describes channels by YouTube, and asks for the channels of a page at once', async (t) => {
  const server = await startYoutube(channels);
  const context = contextOf(server.url, { credentials: { api_key: youtube_key } });
  const pages = await all('youtube', context);
  t.same(
    pages.map(({ hits, next }) => [hits.length, next]),
    [
      [50, 'CDI1'],
      [10, null],
    ],
  );
  t.equal(server.calls.length, 4);
  t.same(pages[0]?.hits.slice(0, 2), [
    {
      ...{
        url: `https://www.youtube.com/channel/${channels[0]?.id}`,
        title: 'Channel 0',
        description: 'About Channel 0',
      },
      ...{ channel: 'youtube', key: channels[0]?.id, country_code: 'DE' },
    },
    {
      ...{
        url: `https://www.youtube.com/channel/${channels[1]?.id}`,
        title: 'Channel 1',
        description: 'About Channel 1',
      },
      ...{ channel: 'youtube', key: channels[1]?.id, followers: 1_000, country_code: 'DE' },
    },
  ]);
  t.ok(
    server.calls.every(({ query }) => query.key === undefined),
    'the key is in no URL',
  );
  t.equal(providers.youtube.units, 101);
});

t.test('says which errors of YouTube are its quota, its rate and its key', async (t) => {
  const server = await startYoutube(channels);
  const context = contextOf(server.url, { credentials: { api_key: youtube_key } });
  server.fault = () => youtubeError(403, 'quotaExceeded');
  await failsWith(t, all('youtube', context), 'quota_exhausted');
  server.fault = () => youtubeError(403, 'rateLimitExceeded', 'usageLimits');
  await failsWith(t, all('youtube', context), 'rate_limited');
  server.fault = () => youtubeError(403, 'accessNotConfigured', 'usageLimits');
  await failsWith(t, providers.youtube.check(context), 'refused');
  server.fault = () => undefined;
  await failsWith(t, all('youtube', contextOf(server.url, { credentials: { api_key: 'other' } })), 'refused');
});

const http_providers = [
  ['searxng', startSearxng],
  ['brave', startBrave],
  ['youtube', () => startYoutube(channels)],
] as const;

for (const [name, start] of http_providers) {
  t.test(`knows what a call to ${name} comes to that fails`, async (t) => {
    const server = await start(listed);
    const context = contextOf(server.url, { credentials: { api_key: name === 'youtube' ? youtube_key : brave_key } });
    server.fault = () => ({ status: 503, body: 'down' });
    t.equal((await failsWith(t, all(name, context), 'unavailable')).may_be_billed, false);
    server.fault = () => ({ status: 200, body: '<html>not JSON' });
    await failsWith(t, all(name, context), 'unavailable');
    server.fault = () => ({ status: 200, body: { results: 'none', items: {}, type: 'search', web: [] } });
    await failsWith(t, all(name, context), 'unavailable');
    server.fault = () => ({ status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' });
    await failsWith(t, all(name, context), 'unavailable');
    server.fault = () => ({ status: 200, body: `"${'x'.repeat(3_000_000)}"` });
    t.equal((await failsWith(t, all(name, context), 'lost')).may_be_billed, true);
    server.fault = () => 'reset';
    await failsWith(t, all(name, context), 'lost');
    server.fault = () => 'hang';
    await failsWith(t, all(name, { ...context, timeout_ms: 50 }), 'lost');
    const stopped = new AbortController();
    const begun = server.called(server.calls.length + 1);
    const hanging = all(name, { ...context, cut_off: stopped.signal });
    const failing = failsWith(t, hanging, 'lost');
    await begun;
    stopped.abort();
    await failing;
    await failsWith(t, all(name, { ...context, url: 'http://127.0.0.1:1' }), 'unavailable');
  });

  t.test(`leaves out single results of ${name} that are malformed`, async (t) => {
    const server = await start(listed);
    const broken = { results: [7, { url: 9 }], web: { results: [null, {}] }, items: [null, { id: 4 }], type: 'search' };
    server.fault = () => ({ status: 200, body: broken });
    const context = contextOf(server.url, { credentials: { api_key: name === 'youtube' ? youtube_key : brave_key } });
    const pages = await all(name, context);
    t.same(
      pages.flatMap(({ hits }) => hits),
      [],
    );
  });
}

t.test('calls no private address that an organization names', async (t) => {
  const server = await startSearxng(listed);
  const pinned = createPinnedAgent({ allowPrivate: false, ownHosts: [] });
  t.teardown(() => pinned.destroy());
  await failsWith(t, all('searxng', contextOf(server.url, { dispatcher: pinned })), 'unavailable');
  t.equal(server.calls.length, 0);
});

t.test('takes the URLs of a list by hundreds, and the pages of the index by fifties', async (t) => {
  const urls = Array.from({ length: 250 }, (_, nth) => `https://named${nth}.example.com/`);
  const pages = await all('url_list', contextOf(''), undefined, { ...query, urls });
  t.same(
    pages.map(({ hits, next }) => [hits.length, next]),
    [
      [100, '100'],
      [100, '200'],
      [50, null],
    ],
  );
  const asked: number[][] = [];
  const findPages: ProviderContext['findPages'] = async (_, limit, after) => {
    asked.push([limit, after]);
    return listed.slice(after, after + limit).map(({ url }) => ({ url, title: '', description: '' }));
  };
  const found = await all('index', contextOf('', { findPages }));
  t.same(
    found.map(({ hits, next }) => [hits.length, next]),
    [[45, null]],
  );
  t.same(asked, [[50, 0]]);
});
