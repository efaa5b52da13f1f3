import t from 'tap';
import { type Caller, type Json, sql, startRail } from '../../harness.ts';
import { brave_key, startBrave, startSearxng, startYoutube, youtube_key, youtubeError } from './search_servers.ts';

const path = '/recruitment/v1/search_providers';
const [brave, youtube, searxng] = await Promise.all([startBrave([]), startYoutube([]), startSearxng([])]);
const rail = await startRail({
  worker: false,
  own: {
    provider_urls: { brave: brave.url, youtube: youtube.url },
    search_credentials: { brave: { api_key: brave_key } },
  },
});

const put = (caller: Caller, name: string, credentials: Json) =>
  caller.request('PUT', `${path}/${name}`, { credentials });

t.test("keeps an organization's key, and shows its last four characters alone", async (t) => {
  const caller = await rail.organization();
  t.match(await caller.get(`${path}/brave`), { configured_by: 'operator', hint: null, updated_at: null });
  const { status, body, text } = await put(caller, 'brave', { api_key: brave_key });
  t.match(
    { status, body },
    { status: 200, body: { configured_by: 'organization', hint: '-key', page_price_micros: 5_000 } },
  );
  t.notOk(text.includes(brave_key));
  const [row] = await rail.query<{ credentials: Buffer }>(sql`
    select credentials from recruitment.provider_credential where organization_id = ${caller.organization_id}`);
  t.notOk(row?.credentials.includes(brave_key));
  t.match(await caller.delete(`${path}/brave`), { object: 'search_provider', deleted: true });
  t.match(await caller.request('DELETE', `${path}/brave`), { status: 404 });
  t.match(await caller.get(`${path}/brave`), { configured_by: 'operator' });
});

t.test('takes one of several keys that are set at once, and refuses none', async (t) => {
  const caller = await rail.organization();
  const answers = await Promise.all(Array.from({ length: 8 }, () => put(caller, 'brave', { api_key: brave_key })));
  t.same(
    answers.map(({ status }) => status),
    Array(8).fill(200),
  );
});

t.test('keeps nothing that the provider refuses, or that could not be tried', async (t) => {
  const caller = await rail.organization();
  t.match(await put(caller, 'brave', { api_key: 'wrong' }), {
    status: 400,
    body: { error: { code: 'invalid_parameter', param: 'credentials' } },
  });
  t.match(await put(caller, 'brave', {}), { status: 400, body: { error: { param: 'credentials.api_key' } } });
  t.match(await put(caller, 'youtube', { api_key: youtube_key, other: 'x' }), { status: 400 });
  youtube.fault = () => ({ status: 500, body: '' });
  t.match(await put(caller, 'youtube', { api_key: youtube_key }), { status: 503 });
  t.match(await put(caller, 'searxng', { url: 'http://127.0.0.1:1/' }), {
    status: 503,
    body: {
      error: {
        message:
          'The SearXNG instance at the given URL did not answer. Nothing was stored. Check the URL, or retry later.',
      },
    },
  });
  const list = await caller.get(path);
  t.same(
    list.data.map(({ name, configured_by }: Json) => [name, configured_by]),
    [
      ['searxng', null],
      ['brave', 'operator'],
      ['youtube', null],
      ['index', null],
      ['url_list', null],
    ],
  );
  youtube.fault = () => undefined;
});

t.test('keeps a key whose quota is used up, and says so', async (t) => {
  const caller = await rail.organization();
  youtube.fault = () => youtubeError(403, 'quotaExceeded');
  const { status, body } = await put(caller, 'youtube', { api_key: youtube_key, daily_quota: 500 });
  t.match(await put(caller, 'youtube', { api_key: youtube_key, daily_quota: '500' }), { status: 200 });
  for (const daily_quota of [0, 1.5, 'many', true]) {
    t.match(await put(caller, 'youtube', { api_key: youtube_key, daily_quota }), { status: 400 }, String(daily_quota));
  }
  youtube.fault = () => undefined;
  t.match({ status, body }, { status: 200, body: { page_units: 101, warnings: [/quota/] } });
  t.match((await put(caller, 'searxng', { url: searxng.url })).body, {
    hint: new URL(searxng.url).host,
    warnings: [/found nothing/],
  });
});

t.test('is not for test keys, and not for other names', async (t) => {
  const caller = await rail.organization();
  const test_key = await rail.key(caller.organization_id, { mode: 'test' });
  t.match(await put(test_key, 'brave', { api_key: brave_key }), { status: 403 });
  t.match(await put(caller, 'index', {}), { status: 400, body: { error: { param: 'name' } } });
  for (const name of ['index', 'url_list']) {
    t.match(await caller.get(`${path}/${name}`), { name, configured_by: null, hint: null, page_price_micros: 0 });
  }
  t.match(await caller.request('GET', `${path}/other`), { status: 400, body: { error: { param: 'name' } } });
});
