import t from 'tap';
import { createKey } from '../../src/core/access/api_key.ts';
import { type Caller, callerOf, type Json, linesOf, sql, startRail, startReceiver } from '../harness.ts';
import { all_but_scans } from './event_types.ts';

const rail = await startRail();
const v1 = '/recruitment/v1';

/** An organization with a brand, whose key is a team member's, and where its events arrive. */
async function openBrand() {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const brand = await caller.post(`${v1}/brands`, { name: 'Acme', website_url: 'https://acme.example.com' });
  const [me] = (await caller.get(`${v1}/team?status=active`)).data;
  return { caller, receiver, brand_id: brand.id as string, me: me as Json };
}
type Opened = Awaited<ReturnType<typeof openBrand>>;

/** A key of no person. */
async function apiKey({ organization_id }: Caller, mode: 'live' | 'test' = 'live'): Promise<Caller> {
  const given = { organization_id, name: 'test', mode, scopes: ['*'], rate_limit: 100_000 };
  const { secret } = await createKey(rail.store.database, given);
  return callerOf(rail.address, secret, organization_id);
}

let nth = 0;
const add = ({ caller, brand_id }: Opened, given: Json = {}): Promise<Json> =>
  caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `blog${++nth}.com`, ...given });
const act = ({ caller }: Opened, { id }: Json, action: string, body: Json = {}): Promise<Json> =>
  caller.post(`${v1}/prospects/${id}/${action}`, body);

/** Waits until so many events came. @returns their types and data, in their order */
const told = async ({ receiver }: Opened, count: number): Promise<[string, Json][]> =>
  (await receiver.until(count)).map(({ body }) => [body.type, body.data]);
const activityOf = async ({ caller }: Opened, { id }: Json): Promise<string[]> =>
  (await caller.get(`${v1}/prospects/${id}/activity`)).data.map(({ kind }: Json) => kind);
const errorOf = async (
  caller: Caller,
  method: string,
  path: string,
  body?: unknown,
): Promise<[number, string, string]> => {
  const { status, body: answer } = await caller.request(method, path, body);
  return [status, answer.error?.code, answer.error?.param];
};

t.test('adds a prospect by URL or key, once in each channel of a brand', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const url = 'https://www.bakingblog.com/about?x=1';
  const prospect = await add(opened, { key: undefined, url, name: 'Baking', email: 'ada@bakingblog.com' });
  t.match(prospect, {
    ...{ id: /^fdi_/, object: 'prospect', brand_id, channel: 'website', key: 'bakingblog.com', url, stage: 'found' },
    ...{ source: 'manual', saved: false, hidden: false, email_status: 'found', evidence: [], custom: {}, score: null },
  });
  const again = await caller.request('POST', `${v1}/prospects`, {
    brand_id,
    channel: 'website',
    key: 'BakingBlog.com',
  });
  t.match(again, { status: 409, body: { error: { code: 'resource_already_exists' }, existing: { id: prospect.id } } });
  const by_key = await apiKey(caller);
  const second = { brand_id, channel: 'youtube', key: '@BakingBlog' };
  t.match(await by_key.post(`${v1}/prospects`, second), { source: 'api', key: 'bakingblog', url: /youtube/ });
  t.same(await told(opened, 3), [
    ['affiliate.added', { prospect_id: prospect.id, channel: 'website', source: 'manual' }],
    ['email.revealed', { prospect_id: prospect.id, source: 'manual', verification: 'unknown', addresses: 1 }],
    [
      'affiliate.added',
      {
        prospect_id: (await caller.get(`${v1}/prospects?brand_id=${brand_id}`)).data[0].id,
        channel: 'youtube',
        source: 'api',
      },
    ],
  ]);
  for (const wrong of [{ key: 'ada@example.com' }, { key: undefined, url: 'https://localhost/' }])
    t.match(await errorOf(caller, 'POST', `${v1}/prospects`, { brand_id, channel: 'website', ...wrong }), [
      400,
      'invalid_parameter',
    ]);
  t.same(await errorOf(caller, 'POST', `${v1}/prospects`, { brand_id, channel: 'website' }), [
    400,
    'missing_parameter',
    'url',
  ]);
});

t.test('updates what is known of a prospect, and shows its statistics on request', async (t) => {
  const opened = await openBrand();
  const { id } = await add(opened);
  const changes = { name: 'Baking', country_code: 'de', language_code: 'DE', followers: 7, custom: { tier: 1 } };
  t.match(await opened.caller.patch(`${v1}/prospects/${id}`, changes), {
    ...{ name: 'Baking', country_code: 'DE', language_code: 'de', followers: 7, custom: { tier: 1 } },
  });
  t.match(await opened.caller.get(`${v1}/prospects/${id}?include=stats`), {
    stats: { sent: 0, replies: 0, last_sent_at: null },
  });
});

t.test('acts on a prospect, tells each change once, and says who did it', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id, me } = opened;
  const prospect = await add(opened);
  const { id: prospect_id, key } = prospect;
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'Favourites' });
  const twice = async (action: string, body: Json = {}) => {
    const first = await act(opened, prospect, action, body);
    t.same(await act(opened, prospect, action, body), first, `${action} again changes nothing`);
    return first;
  };
  t.match(await twice('save'), { saved: true });
  await twice('save', { list_id: list.id });
  t.match(await twice('hide', { reason: 'competitor' }), { hidden: true, hidden_reason: 'competitor' });
  t.match(await twice('unhide'), { hidden: false, hidden_reason: null });
  t.match(await twice('move', { stage: 'contacted', reason: 'Met ada@example.com' }), { stage: 'contacted' });
  t.match(await twice('assign', { member_id: me.id }), { assignee_member_id: me.id });
  t.match(await errorOf(caller, 'POST', `${v1}/prospects/${prospect_id}/signed_up`), [409, 'invalid_state_transition']);
  t.match((await twice('invite', { via: 'mark' })).invited_at, /^20/);
  t.match(await twice('signed_up'), { stage: 'active', signed_up_at: /^20/ });
  const note = await caller.post(`${v1}/prospects/${prospect_id}/notes`, { text: 'Likes bread.' });
  const by = { by_member_id: me.id };
  t.same((await told(opened, 10)).slice(1), [
    ['affiliate.saved', { prospect_id, channel: 'website', key, list_id: null }],
    ['affiliate.saved', { prospect_id, channel: 'website', key, list_id: list.id }],
    ['affiliate.hidden', { prospect_id, reason: 'competitor' }],
    [
      'affiliate.stage_changed',
      { prospect_id, from: 'found', to: 'contacted', by_user_id: me.user_id, reason: 'manual' },
    ],
    ['affiliate.assigned', { prospect_id, brand_id, assignee_member_id: me.id, previous_member_id: null, ...by }],
    ['affiliate.invited', { prospect_id, brand_id, ...by }],
    ['affiliate.signed_up', { prospect_id, brand_id, source: 'manual' }],
    [
      'affiliate.stage_changed',
      { prospect_id, from: 'contacted', to: 'active', by_user_id: me.user_id, reason: 'signed_up' },
    ],
    ['note.added', { prospect_id, brand_id, note_id: note.id, author_member_id: me.id }],
  ]);
  t.same((await activityOf(opened, prospect)).toReversed(), [
    'added',
    'saved',
    'saved',
    'hidden',
    'unhidden',
    'stage_changed',
    'assigned',
    'invited',
    'signed_up',
    'stage_changed',
    'note_added',
  ]);
  t.match((await caller.get(`${v1}/prospects/${prospect_id}/activity?kind=stage_changed`)).data[1], {
    ...{ by_user_id: me.user_id, by_member_id: me.id, data: { text: 'Met ada@example.com', reason: 'manual' } },
  });
  t.match(await act(opened, prospect, 'unsave', { list_id: list.id }), { saved: true });
  t.match(await act(opened, prospect, 'unsave'), { saved: false });
  t.match(await errorOf(caller, 'POST', `${v1}/prospects/${prospect_id}/invite`, { via: 'email' }), [
    400,
    'missing_parameter',
    'inbox_id',
  ]);
});

t.test('a key of no person is the API: it names nobody', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened);
  const by_key = { ...opened, caller: await apiKey(opened.caller) };
  await act(by_key, prospect, 'move', { stage: 'lost' });
  await act(by_key, prospect, 'assign', { member_id: opened.me.id });
  await act(by_key, prospect, 'invite', { via: 'mark' });
  await act(by_key, prospect, 'do_not_contact');
  await by_key.caller.post(`${v1}/prospects/${prospect.id}/notes`, { text: 'x' });
  for (const [type, data] of (await told(opened, 6)).slice(1)) {
    const who = Object.entries(data).filter(([field]) => /^(by_|author_)/.test(field));
    t.same(
      who.map(([, value]) => value),
      [null],
      type,
    );
  }
});

t.test('invites nobody who must not be written to, and takes no URL of another prospect', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const [marked, gone] = [await add(opened), await add(opened, { email: 'ada@uninvited.com' })];
  await act(opened, marked, 'do_not_contact');
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: 'ada@uninvited.com', reason: 'unsubscribed' });
  for (const { id } of [marked, gone])
    t.match(await errorOf(caller, 'POST', `${v1}/prospects/${id}/invite`, { via: 'mark' }), [409, 'suppressed']);
  const ids = [marked.id, gone.id];
  const { data } = await caller.post(`${v1}/prospects/bulk`, { action: 'invite', prospect_ids: ids });
  t.match(data, [{ error: { code: 'suppressed' } }, { error: { code: 'suppressed' } }]);
  const refused = [400, 'invalid_parameter', 'url'];
  const given = { brand_id, channel: 'website', key: 'one-site.com', url: 'https://two-site.com/' };
  t.same(await errorOf(caller, 'POST', `${v1}/prospects`, given), refused);
  t.same(await errorOf(caller, 'PATCH', `${v1}/prospects/${marked.id}`, { url: 'https://two-site.com/' }), refused);
  for (const [channel, key, accepted] of [
    ['other', 'zork-1', /Send a domain, or the URL of a site or of an account: a handle alone/],
    ['x', 'no-handle', /Send a handle, or the URL of the profile\./],
    ['youtube', 'a b', /Send a handle, a channel id, or the URL of the channel\./],
  ] as const) {
    const { body } = await caller.request('POST', `${v1}/prospects`, { brand_id, channel, key });
    t.match(body, { error: { code: 'invalid_parameter', param: 'key', message: accepted } });
  }
  const own_url = `https://www.${marked.key}/about`;
  t.match(await caller.patch(`${v1}/prospects/${marked.id}`, { url: own_url }), { url: own_url });
  const account = { channel: 'youtube', key: '@ada', url: 'https://www.youtube.com/@grace' };
  t.same(await errorOf(caller, 'POST', `${v1}/prospects`, { brand_id, ...account }), refused);
  t.match(await add(opened, { ...account, url: 'https://ada-site.com/' }), { url: 'https://ada-site.com/' });
  const feeds = ['AAA', 'BBB', 'aaa'].map((name) => `https://feeds.megaphone.fm/${name}`);
  for (const url of [...feeds, 'https://anchor.fm/s/1a2b/podcast/rss', 'https://feeds.buzzsprout.com/12.rss'])
    t.match(await add(opened, { channel: 'podcast', key: undefined, url }), { url });
  const german = await add(opened, { name: 'Krume', country_code: 'de', language_code: 'DE' });
  for (const query of ['country_code=de', 'language_code=DE', 'country_code=De&q=krume'])
    t.match((await caller.get(`${v1}/prospects?brand_id=${brand_id}&${query}`)).data, [{ id: german.id }], query);
  t.match(await errorOf(caller, 'GET', `${v1}/prospects?brand_id=${brand_id}&country_code=DEU`), [400]);
  const twice = { countries: ['de', 'DE'], languages: ['de', 'DE'], channels: ['x', 'x'], keywords: ['a', 'a'] };
  t.match(await caller.patch(`${v1}/brands/${brand_id}`, twice), {
    ...{ countries: ['DE'], languages: ['de'], channels: ['x'], keywords: ['a'] },
  });
});

t.test('a member who is removed owns nothing any more', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const member = await caller.post(`${v1}/team`, { email: 'grace@example.com' });
  const [one, two] = [await add(opened), await add(opened)];
  for (const prospect of [one, two]) await act(opened, prospect, 'assign', { member_id: member.id });
  t.equal((await caller.get(`${v1}/prospects?brand_id=${brand_id}&assignee_member_id=${member.id}`)).total_count, 2);
  await caller.delete(`${v1}/team/${member.id}`);
  const unassigned = (await told(opened, 6)).slice(4);
  t.same(
    unassigned.map(([type, data]) => [type, data]),
    [one, two].map(({ id: prospect_id }) => [
      'affiliate.assigned',
      { prospect_id, brand_id, assignee_member_id: null, previous_member_id: member.id, by_member_id: null },
    ]),
  );
  t.equal((await caller.get(`${v1}/prospects?brand_id=${brand_id}&assignee_member_id=none`)).total_count, 2);
  t.same(await errorOf(caller, 'POST', `${v1}/prospects/${one.id}/assign`, { member_id: member.id }), [
    404,
    'resource_not_found',
    'member_id',
  ]);
});

t.test('the key of a member who was removed is that of a user, and of nobody in the team', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const member = await caller.post(`${v1}/team`, { email: 'grace@example.com' });
  const key = { organization_id: caller.organization_id, name: 'test', mode: 'live' as const, scopes: ['*'] };
  const { secret } = await createKey(rail.store.database, { ...key, rate_limit: 1_000, user_id: member.user_id });
  const hers = { ...opened, caller: callerOf(rail.address, secret, caller.organization_id) };
  t.match(await add(hers), { source: 'manual' });
  await caller.delete(`${v1}/team/${member.id}`);
  const prospect = await add(hers);
  t.match(prospect, { source: 'api' });
  await act(hers, prospect, 'assign', { member_id: opened.me.id });
  await act(hers, prospect, 'move', { stage: 'lost' });
  t.match((await told(opened, 4)).slice(1), [
    ['affiliate.added', { source: 'api' }],
    ['affiliate.assigned', { by_member_id: null }],
    ['affiliate.stage_changed', { by_user_id: member.user_id }],
  ]);
});

t.test('acts on many, each with an outcome of its own', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const [one, two] = [await add(opened), await add(opened)];
  const prospect_ids = [one.id, 'fdi_unknown', two.id, 'sample_fdi_01'];
  const bulk = (body: Json) => caller.post(`${v1}/prospects/bulk`, { prospect_ids, ...body });
  await act(opened, two, 'hide', { reason: 'other' });
  t.match((await bulk({ action: 'hide', reason: 'other' })).data, [
    { prospect_id: one.id, status: 'done', error: null },
    { status: 'failed', error: { code: 'resource_not_found' } },
    { prospect_id: two.id, status: 'unchanged', error: null },
    { status: 'failed', error: { code: 'sample_prospect' } },
  ]);
  const other = await openBrand();
  const foreign = await add(other);
  const unknown = { action: 'save', prospect_ids: ['fdi_unknown', foreign.id] };
  t.match((await bulk(unknown)).data, [
    { prospect_id: 'fdi_unknown', status: 'failed', error: { code: 'resource_not_found' } },
    { prospect_id: foreign.id, status: 'failed', error: { code: 'resource_not_found' } },
  ]);
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'A' });
  for (const body of [
    { action: 'save', list_id: list.id },
    { action: 'move', stage: 'lost', reason: 'closed' },
    { action: 'assign', member_id: opened.me.id },
    { action: 'invite' },
  ])
    t.same(
      (await bulk(body)).data.map(({ status }: Json) => status),
      ['done', 'failed', 'done', 'failed'],
      body.action,
    );
  const types = (await told(opened, 12)).slice(4).map(([type]) => type);
  t.same(
    types,
    ['saved', 'saved', 'stage_changed', 'stage_changed', 'assigned', 'assigned', 'invited', 'invited'].map(
      (type) => `affiliate.${type}`,
    ),
  );
  for (const [body, code] of [
    [{ action: 'hide' }, 'missing_parameter'],
    [{ action: 'hide', reason: 'because' }, 'invalid_parameter'],
    [{ action: 'invite', stage: 'lost' }, 'invalid_parameter'],
    [{ action: 'save', prospect_ids: Array.from({ length: 501 }, (_, each) => `fdi_${each}`) }, 'invalid_parameter'],
  ] as const)
    t.match(await errorOf(caller, 'POST', `${v1}/prospects/bulk`, { prospect_ids, ...body }), [/^4/, code]);
});

t.test('lists by every filter, and in every format', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id, me } = opened;
  const one = await add(opened, {
    key: 'one.com',
    name: 'Sourdough weekly',
    description: 'Bread from Berlin',
    country_code: 'DE',
    language_code: 'de',
    followers: 10,
    email: 'ada@one.com',
  });
  const two = await add(opened, {
    channel: 'youtube',
    key: 'crumbs',
    name: 'Crumbs',
    description: 'Bread and butter',
    followers: 1_000,
  });
  const other_brand = await caller.post(`${v1}/brands`, { name: 'Other', website_url: 'https://other.example.com' });
  await add({ ...opened, brand_id: other_brand.id }, { name: 'Sourdough elsewhere' });
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'A' });
  await act(opened, one, 'save', { list_id: list.id });
  await act(opened, one, 'assign', { member_id: me.id });
  await act(opened, one, 'do_not_contact');
  await act(opened, two, 'hide', { reason: 'other' });
  await act(opened, two, 'invite', { via: 'mark' });
  await act(opened, two, 'signed_up');
  await caller.post(`${v1}/do_not_contact`, { kind: 'address', email: 'ada@one.com', reason: 'unsubscribed' });
  t.match(await caller.get(`${v1}/prospects/${one.id}`), { email_status: 'none' }, 'the only address is barred');
  await caller.post(`${v1}/prospects/${one.id}/emails`, { email: 'grace@one.com' });
  const search_id = 'fsc_01kap3b6n8f2v9w4x7y0z1a2b3';
  await rail.query(
    sql`update recruitment.prospect set source = 'search', source_run_id = ${search_id} where id = ${one.id}`,
  );
  const ids = async (query: string) =>
    (await caller.get(`${v1}/prospects?brand_id=${brand_id}&${query}`)).data.map(({ id }: Json) => id);
  const only_one = [
    ...['stage=found', 'channel=website', 'source=search', 'saved=true', 'hidden=false', `list_id=${list.id}`],
    ...[`assignee_member_id=${me.id}`, 'country_code=DE', 'language_code=de', 'max_followers=10', 'has_email=true'],
    ...['do_not_contact=true', 'unsubscribed=true', 'invited=false', 'signed_up=false'],
    ...[
      `search_id=${search_id}`,
      `scan_id=${search_id}`,
      'q=sourdough',
      'q=SOURDOUGH+weekly',
      'q="bread+from"',
      'q=bread+-butter',
    ],
    ...[
      'https://www.one.com/about',
      'http://one.com',
      'www.one.com',
      'one.com/a?b=c',
      '"https://one.com/" sourdough',
    ].map((text) => `q=${encodeURIComponent(text)}`),
    ...[
      'q=bread&country_code=DE',
      'q=bread&stage=found&channel=website&language_code=de&source=search',
      'q=bread&saved=true',
    ],
  ];
  const only_two = [
    ...['stage=active', 'channel=youtube', 'source=manual', 'saved=false', 'hidden=true', 'assignee_member_id=none'],
    ...[
      'min_followers=11',
      'has_email=false',
      'do_not_contact=false',
      'unsubscribed=false',
      'invited=true',
      'signed_up=true',
    ],
    ...[
      'q=crumbs',
      'q=butter',
      'q=bread&stage=active',
      'q=https://www.youtube.com/@Crumbs',
      'q=bread+-https://one.com/x',
    ],
  ];
  for (const query of only_one) t.same(await ids(query), [one.id], query);
  for (const query of only_two) t.same(await ids(query), [two.id], query);
  t.same(await ids('q=bread'), [two.id, one.id]);
  for (const query of ['q=brand', 'q=...', 'q=elsewhere', `q=${brand_id}`, 'q=stage=found'])
    t.same(await ids(query), [], query);
  t.match((await caller.get(`${v1}/prospects?brand_id=${brand_id}&expand=brand,assignee_member&q=bread`)).data, [
    { brand: { id: brand_id }, assignee_member: null },
    { brand: { id: brand_id, name: 'Acme' }, assignee_member: { id: me.id } },
  ]);
  t.match(await caller.get(`${v1}/prospects/sample_fdi_01?expand=brand`), { brand: null });
  t.match(await caller.get(`${v1}/lists/${list.id}?expand=brand`), { brand: { id: brand_id } });
  t.match(await errorOf(caller, 'GET', `${v1}/prospects`), [400, 'missing_parameter', 'brand_id']);
  const rows = (await caller.request('GET', `${v1}/prospects?brand_id=${brand_id}&format=ndjson&q=bread`)).text;
  t.same(
    linesOf(rows).map(({ id }) => id),
    [two.id, one.id],
  );
  t.match(
    (await caller.request('GET', `${v1}/prospects?brand_id=${brand_id}&format=csv`)).text,
    /^id,object,brand_id,.*\r\nfdi_/,
  );
});

t.test('finds words of every script, with or without accents, in any normal form', async (t) => {
  const opened = await openBrand();
  const texts = {
    cafe: 'Le Café «Élan» de Łódź, Große Straße',
    tokyo: '東京都の料理ブログ。パンとケーキ',
    seoul: '서울 빵집 이야기를 쓰는 블로그',
    bangkok: 'บล็อกทำอาหารไทยง่ายๆ',
    moscow: 'Хлеб и ёлки',
    mixed: 'iPhone中古 ranking 🍞toast ﾊﾝﾊﾞｰｶﾞｰ',
  };
  const ids: Record<string, string> = {};
  for (const [name, description] of Object.entries(texts))
    ids[name] = (await add(opened, { description: description.normalize('NFD') })).id;
  const search = async (q: string) => {
    const query = `brand_id=${opened.brand_id}&q=${encodeURIComponent(q)}`;
    const page = await opened.caller.get(`${v1}/prospects?${query}`);
    t.equal(page.total_count, page.data.length, q);
    return page.data.map(({ id }: Json) => id);
  };
  for (const [q, name] of [
    ...[
      ['cafe', 'cafe'],
      ['CAFÉ', 'cafe'],
      ['café'.normalize('NFD'), 'cafe'],
      ['élan', 'cafe'],
      ['lodz', 'cafe'],
    ],
    ...[
      ['strasse', 'cafe'],
      ['"große straße"', 'cafe'],
      ['東京', 'tokyo'],
      ['京都', 'tokyo'],
      ['料理', 'tokyo'],
    ],
    ...[
      ['料', 'tokyo'],
      ['東京都の料理', 'tokyo'],
      ['"ケーキ"', 'tokyo'],
      ['"料理ブログ。パン"', 'tokyo'],
      ['빵집', 'seoul'],
      ['"서울 빵집 이야기"', 'seoul'],
      ['"iphone中古 ranking"', 'mixed'],
      ['이야기', 'seoul'],
    ],
    ...[
      ['อาหาร', 'bangkok'],
      ['елки', 'moscow'],
      ['ХЛЕБ', 'moscow'],
      ['中古', 'mixed'],
      ['iphone', 'mixed'],
    ],
    ...[
      ['toast', 'mixed'],
      ['ハンバーガー', 'mixed'],
      ['ranking -料理', 'mixed'],
      ['料理 or 서울 -빵집', 'tokyo'],
    ],
  ] as [string, string][])
    t.same(await search(q), [ids[name]], q);
  for (const q of ['東都', '京東', '"料理 東京"', '"서울 이야기"', '東京 -パン']) t.same(await search(q), [], q);
});

t.test('counts every list exactly, whatever its filters and its cursor', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const stages = ['contacted', 'found', 'lost'];
  for (let each = 0; each < 30; each++) {
    const one = await add(opened, { country_code: each % 3 ? 'DE' : 'FR', followers: each, description: 'rye bread' });
    if (each % 2) await act(opened, one, 'save');
    if (each % 5 === 0) await act(opened, one, 'move', { stage: stages[each % 3] });
    if (each % 7 === 0) await act(opened, one, 'hide', { reason: 'other' });
    if (each % 11 === 0) await act(opened, one, 'do_not_contact');
    if (each === 17) await caller.delete(`${v1}/prospects/${one.id}`);
  }
  const list = (query: string) => caller.get(`${v1}/prospects?brand_id=${brand_id}&${query}`);
  const all = (await list('limit=100')).data as Json[];
  const known: [string, (prospect: Json) => boolean][] = [
    ['stage=found', ({ stage }) => stage === 'found'],
    ['country_code=FR', ({ country_code }) => country_code === 'FR'],
    ['saved=true', ({ saved }) => saved],
    ['hidden=false', ({ hidden }) => !hidden],
    ['do_not_contact=true', ({ do_not_contact }) => do_not_contact !== null],
    ['invited=false', () => true],
    ['min_followers=12', ({ followers }) => followers >= 12],
    ['q=bread', () => true],
    ['q=rye -bread', () => false],
  ];
  const check = async (moment: string) => {
    t.equal((await list('limit=1')).total_count, 29, moment);
    for (const [nth, [one, holds]] of known.entries())
      for (const further of [1, 3]) {
        const [other, also] = known[(nth + further) % known.length] as (typeof known)[number];
        if (one.startsWith('q') && other.startsWith('q')) continue;
        const expected = all.filter((prospect) => holds(prospect) && also(prospect)).map(({ id }) => id);
        const first = await list(`${one}&${other}&limit=3`);
        t.equal(first.total_count, expected.length, `${one} ${other}`);
        t.same(
          first.data.map(({ id }: Json) => id),
          expected.slice(0, 3),
          `${one} ${other}`,
        );
        if (!first.has_more) continue;
        const next = await list(`${one}&${other}&limit=3&starting_after=${first.data[2].id}`);
        t.equal(next.total_count, expected.length);
        t.same(
          next.data.map(({ id }: Json) => id),
          expected.slice(3, 6),
        );
      }
  };
  await check('by notes');
  await rail.query(sql`select recruitment.fold_prospect_tallies(100000)`);
  await check('by tallies');
  t.match(await caller.get(`${v1}/brands/${brand_id}?include[]=stats`), {
    stats: { prospects: 29, saved: all.filter(({ saved }) => saved).length, contacted: 0 },
  });
  t.same(
    await rail.query(
      sql`select * from recruitment.prospect_tally_audit() a where a.organization_id = ${caller.organization_id}`,
    ),
    [],
  );
});

t.test('takes any text for full text', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened, { name: 'Well-known bread', description: 'Not --butter' });
  const search = (q: string) =>
    opened.caller.request('GET', `${v1}/prospects?brand_id=${opened.brand_id}&q=${encodeURIComponent(q)}`);
  const odd = [
    '-',
    '- ',
    '-\t',
    '-\u0085',
    '-\u00a0',
    '-\u2003',
    '-\u200b',
    '-!',
    '-(',
    '!-',
    '-|&',
    '-"',
    '"-',
    '-.',
    "-'",
    '-\\',
  ];
  const texts = [
    ...odd,
    '-:',
    '-*',
    '<->',
    ' or ',
    'or -',
    '(',
    '\u0301-',
    '-_',
    ':*',
    '&',
    '-\u{1f35e}',
    '\ufeff-',
    '-a',
  ];
  for (const text of texts) {
    const q = text.repeat(100).slice(0, 200).toWellFormed();
    const { status } = await search(q);
    t.equal(status, q.trim() === '' ? status : 200, JSON.stringify(text));
  }
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  for (let round = 0; round < 20; round++) {
    const q = Array.from({ length: 40 + random(60) }, () => texts[random(texts.length)])
      .join('')
      .slice(0, 200)
      .toWellFormed();
    t.equal((await search(q)).status, 200, JSON.stringify(q));
  }
  for (const q of ['well-known', '--known bread -butte', '"well-known bread"', `${'-'.repeat(40)}absent`])
    t.match((await search(q)).body.data, q.startsWith('--known') ? [] : [{ id: prospect.id }], q);
});

t.test('shows no prospect of another organization by full text', async (t) => {
  const [opened, other] = [await openBrand(), await openBrand()];
  await add(other, { name: 'Secret sourdough' });
  t.match(await errorOf(opened.caller, 'GET', `${v1}/prospects?brand_id=${other.brand_id}&q=sourdough`), [404]);
  const found = await rail.query(sql`
    select recruitment.find_prospects(array[${`brand=${other.brand_id}`}], 'sourdough')`);
  t.same(found, [], 'the function by itself gives nothing outside of a tenant');
});

t.test('keeps notes and lists', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const [one, two] = [await add(opened), await add(opened)];
  const note = await caller.post(`${v1}/prospects/${one.id}/notes`, { text: 'a' });
  t.match(await caller.patch(`${v1}/notes/${note.id}`, { text: 'b' }), { text: 'b', prospect_id: one.id });
  t.match((await caller.get(`${v1}/prospects/${one.id}/notes`)).data, [{ id: note.id, text: 'b' }]);
  await caller.delete(`${v1}/notes/${note.id}`);
  t.equal((await caller.get(`${v1}/prospects/${one.id}/notes`)).total_count, 0);
  for (const text of ['', ' ', 'x'.repeat(5001)])
    t.match(await errorOf(caller, 'POST', `${v1}/prospects/${one.id}/notes`, { text }), [
      400,
      'invalid_parameter',
      'text',
    ]);
  const list = await caller.post(`${v1}/lists`, { brand_id, name: 'Best' });
  t.match(await caller.request('POST', `${v1}/lists`, { brand_id, name: 'BEST' }), {
    status: 409,
    body: { existing: { id: list.id } },
  });
  const add_all = { prospect_ids: [two.id, one.id] };
  await act(opened, one, 'save', { list_id: list.id });
  t.match((await caller.post(`${v1}/lists/${list.id}/prospects`, add_all)).data, [
    { prospect_id: two.id, status: 'done' },
    { prospect_id: one.id, status: 'unchanged' },
  ]);
  t.match(await caller.get(`${v1}/lists/${list.id}?include=stats`), { stats: { prospects: 2 } });
  const in_list = `${v1}/lists/${list.id}/prospects/${one.id}`;
  t.match(await caller.delete(in_list), { object: 'prospect', id: one.id, saved: true });
  const { status, body } = await caller.request('DELETE', in_list);
  t.equal(status, 404);
  t.equal(body.error.message, `The list has no prospect with the id '${one.id}'.`);
  t.match(await caller.get(`${v1}/prospects/${one.id}`), { saved: true });
  const elsewhere = await caller.post(`${v1}/brands`, { name: 'Other', website_url: 'https://other.example.com' });
  const foreign = await add({ ...opened, brand_id: elsewhere.id });
  const wrong = { prospect_ids: [two.id, foreign.id] };
  t.same(await errorOf(caller, 'POST', `${v1}/lists/${list.id}/prospects`, wrong), [
    404,
    'resource_not_found',
    'prospect_ids',
  ]);
  t.same(await errorOf(caller, 'POST', `${v1}/prospects/${foreign.id}/save`, { list_id: list.id }), [
    404,
    'resource_not_found',
    'list_id',
  ]);
  await caller.delete(`${v1}/lists/${list.id}`);
  t.match(await caller.get(`${v1}/prospects/${two.id}`), { saved: true });
});

t.test('finds no prospect of a deleted brand', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened);
  await opened.caller.delete(`${v1}/brands/${opened.brand_id}`);
  t.match(await errorOf(opened.caller, 'GET', `${v1}/prospects/${prospect.id}`), [404, 'resource_not_found', 'id']);
});

t.test('samples: 12, of every organization, which never count and tell test endpoints alone', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const test_receiver = await startReceiver();
  const tester = await apiKey(caller, 'test');
  await tester.post(`${v1}/webhook_endpoints`, { url: test_receiver.url });
  const samples = await tester.get(`${v1}/sample_prospects`);
  t.equal(samples.total_count, 12);
  t.same(
    samples.data.map(({ id }: Json) => id),
    Array.from({ length: 12 }, (_, each) => `sample_fdi_${String(each + 1).padStart(2, '0')}`),
  );
  const path = `${v1}/prospects/sample_fdi_01`;
  for (const by of [tester, caller])
    t.match(await by.get(path), { id: 'sample_fdi_01', source: 'sample', saved: false });
  for (const [action, body] of [
    ['save', {}],
    ['hide', { reason: 'other' }],
    ['move', { stage: 'lost' }],
    ['notes', { text: 'A note with ada@example.com' }],
    ['save', {}],
    ['hide', { reason: 'other' }],
    ['move', { stage: 'lost' }],
  ] as const)
    await tester.post(`${path}/${action}`, body);
  t.match(await caller.get(path), { saved: true, hidden: true, hidden_reason: 'other', stage: 'lost' });
  await caller.post(`${v1}/prospects/sample_fdi_02/move`, { stage: 'agreed' });
  const received = await test_receiver.until(5);
  t.same(
    received.map(({ body }) => [body.type, body.livemode, body.id.slice(0, 9), body.data.prospect_id]),
    [
      ...['saved', 'hidden', 'stage_changed'].map((type) => [`affiliate.${type}`, false, 'evt_test_', 'sample_fdi_01']),
      ['note.added', false, 'evt_test_', 'sample_fdi_01'],
      ['affiliate.stage_changed', false, 'evt_test_', 'sample_fdi_02'],
    ],
  );
  t.equal((await caller.get(`${v1}/prospects?brand_id=${brand_id}`)).total_count, 0);
  const real = await add(opened);
  for (const [method, action, body] of [
    ['POST', 'unsave'],
    ['POST', 'assign', { member_id: null }],
    ['POST', 'invite', { via: 'mark' }],
    ['POST', 'signed_up'],
    ['POST', 'do_not_contact'],
    ['POST', 'do_not_contact/lift'],
    ['POST', 'emails', { email: 'ada@example.com' }],
    ['GET', 'activity'],
    ['GET', 'notes'],
    ['GET', 'export'],
  ] as const) {
    for (const by of [caller, tester])
      t.match(await errorOf(by, method, `${path}/${action}`, body), [409, 'sample_prospect'], action);
    t.match(await errorOf(tester, method, `${v1}/prospects/${real.id}/${action}`, body), [403, 'test_key_not_allowed']);
  }
  for (const by of [caller, tester]) {
    t.match(await errorOf(by, 'DELETE', path), [409, 'sample_prospect']);
    t.match(await errorOf(by, 'PATCH', path, { name: 'x' }), [409, 'sample_prospect']);
    t.match(await errorOf(by, 'POST', `${path}/save`, { list_id: 'fls_1' }), [409, 'sample_prospect']);
  }
  for (const [method, action, body] of [
    ['GET', ''],
    ['POST', '/save', {}],
    ['POST', '/hide', { reason: 'other' }],
    ['POST', '/move', { stage: 'lost' }],
    ['POST', '/notes', { text: 'x' }],
  ] as const)
    t.match(await errorOf(tester, method, `${v1}/prospects/${real.id}${action}`, body), [403, 'test_key_not_allowed']);
  t.match(await errorOf(tester, 'GET', `${v1}/prospects/sample_fdi_13`), [404]);
  t.same(
    (await told(opened, 1)).map(([type]) => type),
    ['affiliate.added'],
    'live endpoints hear nothing of samples',
  );
});

t.test('gives the same pages of frequent and of rare words, with and without filters', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  await rail.query(sql`
    insert into recruitment.prospect (organization_id, id, brand_id, channel, key, description, country_code, source, stage, saved)
    select ${caller.organization_id}, 'fdi_many' || lpad(n::text, 22, '0'), ${brand_id}, 'website', 'many' || n || '.com',
      concat_ws(' ', case when n % 10 < 9 then 'oats' end, case when n <= 5200 then 'barley' end, case when n % 100 = 0 then 'spelt' end),
      case when n % 3 = 0 then 'US' else 'DE' end, 'scan', case when n % 4 = 0 then 'contacted' else 'found' end, n % 70 = 0
    from generate_series(1, 5700) as s (n)`);
  await rail.query(sql`analyze recruitment.prospect`);
  const numbers = Array.from({ length: 5_700 }, (_, index) => 5_700 - index);
  const texts: [string, (n: number) => boolean][] = [
    ['oats', (n) => n % 10 < 9],
    ['barley', (n) => n <= 5_200],
    ['spelt', (n) => n % 100 === 0],
    ['oats -barley', (n) => n % 10 < 9 && n > 5_200],
  ];
  const filters: [string, (n: number) => boolean][] = [
    ['', () => true],
    ['&saved=false&has_email=false', (n) => n % 70 !== 0],
    ['&stage=contacted&country_code=US', (n) => n % 12 === 0],
  ];
  for (const [q, matches] of texts) {
    for (const [query, passes] of filters) {
      const all = numbers.filter((n) => matches(n) && passes(n)).map((n) => `fdi_many${String(n).padStart(22, '0')}`);
      const list = async (page: string) => {
        const path = `${v1}/prospects?brand_id=${brand_id}&limit=5&q=${encodeURIComponent(q)}${query}${page}`;
        const { data, total_count, has_more } = await caller.get(path);
        return [total_count, has_more, data.map(({ id }: Json) => id)];
      };
      const middle = Math.floor(all.length / 2);
      const page = (from: number, to: number, has_more: boolean) => [all.length, has_more, all.slice(from, to)];
      t.same(await list(''), page(0, 5, all.length > 5), `${q}${query}`);
      t.same(
        await list(`&starting_after=${all[middle]}`),
        page(middle + 1, middle + 6, all.length > middle + 6),
        `${q}${query}: in the middle`,
      );
      t.same(
        await list(`&ending_before=${all[middle]}`),
        page(Math.max(0, middle - 5), middle, middle > 5),
        `${q}${query}: backwards`,
      );
    }
  }
});
