import t from 'tap';
import { isNetwork, isWithin } from '../../../src/core/net/ip_range.ts';
import { type Caller, callerOf, eventually, type Json, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const merchant = await rail.organization();

const clientOf = ({ secret }: Json, { organization_id } = merchant): Caller =>
  callerOf(rail.address, secret, organization_id);
const newKey = (caller: Caller, given: Json = {}) =>
  caller.post('/v1/api_keys', { name: 'Checkout', scopes: ['programs:read', 'keys:write'], ...given });
const outcome = async (caller: Caller, path = '/v1/programs') => {
  const { status, body } = await caller.request('GET', path);
  return body.error?.code ?? status;
};
/** A process that was granted requests of a second learns of a change with the next one. */
const becomes = (caller: Caller, expected: unknown) =>
  eventually(async () => (await outcome(caller)) === expected, `the key to answer ${expected}`);

t.test('a key is created, listed and read over the API, and shown once', async (t) => {
  const made = await newKey(merchant);
  t.match(made, { object: 'api_key', status: 'active', mode: 'live', last_used_at: null, expires_at: null });
  t.match(made.secret, /^rail_live_/);
  t.equal(await outcome(clientOf(made)), 200);
  t.equal(await outcome(clientOf(made), '/v1/api_keys'), 'insufficient_scope');
  const read = await merchant.get(`/v1/api_keys/${made.id}`);
  t.same({ ...read, last_used_at: null }, (({ secret: _, ...key }) => key)(made));
  t.type(read.last_used_at, 'string');
  const listed = await merchant.request('GET', '/v1/api_keys?status=active');
  t.ok(listed.body.data.some(({ id }: Json) => id === made.id));
  t.notOk(listed.text.includes(made.secret));
  t.equal((await merchant.get('/v1/api_keys?status=revoked')).total_count, 0);
});

t.test('a restricted key is another one everywhere within a second, also one of a high limit', async (t) => {
  const made = await newKey(merchant, { rate_limit: 1_000, scopes: ['programs:read', 'partners:read'] });
  const holder = clientOf(made);
  t.equal(await outcome(holder), 200);
  const change = (body: Json) => merchant.patch(`/v1/api_keys/${made.id}`, body);
  await change({ scopes: ['partners:read'] });
  await becomes(holder, 'insufficient_scope');
  await change({ scopes: ['programs:read'], ip_ranges: ['203.0.113.0/24'] });
  await becomes(holder, 'ip_not_allowed');
  const refused = await holder.request('GET', '/v1/programs');
  t.match(refused, { status: 403, body: { error: { type: 'permission_error', message: /127\.0\.0\.1/ } } });
  await change({ ip_ranges: ['203.0.113.0/24', '127.0.0.0/8'] });
  await becomes(holder, 200);
  await change({ expires_at: new Date(Date.now() + 1_000).toISOString() });
  await becomes(holder, 'expired_api_key');
  t.equal((await holder.request('GET', '/v1/programs')).status, 401);
  t.match(await merchant.get(`/v1/api_keys/${made.id}`), { status: 'expired' });
  await change({ expires_at: null });
  await becomes(holder, 200);
  t.match(await merchant.post(`/v1/api_keys/${made.id}/revoke`), { status: 'revoked', revoked_at: /^20/ });
  await becomes(holder, 'revoked_api_key');
  const late = await merchant.request('PATCH', `/v1/api_keys/${made.id}`, { name: 'Again' });
  t.match(late, { status: 409, body: { error: { code: 'invalid_state_transition' } } });
});

t.test('a rotated key is valid beside the new one until its overlap is over', async (t) => {
  const made = await newKey(merchant);
  const rotated = await merchant.post(`/v1/api_keys/${made.id}/rotate`, {});
  t.equal(rotated.id, made.id);
  t.not(rotated.secret, made.secret);
  t.ok(Date.parse(rotated.previous_secret_expires_at) > Date.now() + 23 * 3_600_000);
  for (const key of [made, rotated]) t.equal(await outcome(clientOf(key)), 200);
  const last = await merchant.post(`/v1/api_keys/${made.id}/rotate`, { overlap_hours: 0 });
  t.equal(await outcome(clientOf(last)), 200);
  await becomes(clientOf(rotated), 'expired_api_key');
  await becomes(clientOf(made), 'invalid_api_key');
});

t.test('the use of either secret is that of the key', async (t) => {
  const made = await newKey(merchant);
  await merchant.post(`/v1/api_keys/${made.id}/rotate`, {});
  const [row] = await rail.query<{ is_used: boolean }>(
    sql`select last_used_at is not null as is_used from core.api_key where id = ${made.id}`,
  );
  t.notOk(row?.is_used);
  await clientOf(made).get('/v1/programs');
  t.match(await merchant.get(`/v1/api_keys/${made.id}`), { last_used_at: /^20/ });
});

t.test('a key gives no more than it has', async (t) => {
  const in_an_hour = new Date(Date.now() + 3_600_000).toISOString();
  const bound = { expires_at: in_an_hour, ip_ranges: ['127.0.0.0/8'], rate_limit: 20, mode: 'test' };
  const narrow = clientOf(await newKey(merchant, bound));
  const child = await newKey(narrow);
  t.match(child, { ...bound, user_id: /^usr_/ }, 'what is left out is as of its own');
  const refusedFor = async (given: Json, param: string) => {
    const { status, body } = await narrow.request('POST', '/v1/api_keys', {
      name: 'X',
      scopes: ['keys:write'],
      ...given,
    });
    t.match([status, body.error], [403, { code: 'key_not_allowed', param }], JSON.stringify(given));
  };
  await refusedFor({ scopes: ['partners:read'] }, 'scopes');
  await refusedFor({ scopes: ['*'] }, 'scopes');
  await refusedFor({ scopes: ['*:read'] }, 'scopes');
  await refusedFor({ mode: 'live' }, 'mode');
  await refusedFor({ rate_limit: 21 }, 'rate_limit');
  await refusedFor({ expires_at: null }, 'expires_at');
  await refusedFor({ expires_at: new Date(Date.now() + 7_200_000).toISOString() }, 'expires_at');
  await refusedFor({ ip_ranges: null }, 'ip_ranges');
  await refusedFor({ ip_ranges: ['127.0.0.1', '203.0.113.7'] }, 'ip_ranges');
  const below = {
    scopes: ['keys:write'],
    expires_at: new Date(Date.now() + 60_000).toISOString(),
    ip_ranges: ['127.0.0.1'],
  };
  t.match(await newKey(narrow, below), below);

  const wide = await newKey(merchant, { scopes: ['*'] });
  for (const [method, path, body] of [
    ['POST', `/v1/api_keys/${wide.id}/rotate`, {}],
    ['POST', `/v1/api_keys/${wide.id}/revoke`, undefined],
    ['PATCH', `/v1/api_keys/${wide.id}`, { name: 'Mine' }],
  ] as const) {
    const { status, body: answer } = await narrow.request(method, path, body);
    t.match([status, answer.error], [403, { code: 'key_not_allowed' }], `${method} ${path}`);
  }
  t.equal(await outcome(clientOf(wide)), 200);
});

t.test('nobody makes or takes over a key of another user, who could then approve payouts', async (t) => {
  const colleague = await rail.key(merchant.organization_id);
  const theirs = (await colleague.get('/v1/api_keys')).data.find(
    ({ user_id, last_used_at }: Json) => user_id && last_used_at,
  );
  const { user_id } = await newKey(colleague);
  t.match(user_id, /^usr_/);
  t.equal((await newKey(colleague, { for_user: false })).user_id, null);
  const keys = (await merchant.get(`/v1/api_keys?user_id=${user_id}`)).data;
  t.ok(keys.length > 1);
  t.ok(theirs);
  const { status, body } = await merchant.request('POST', `/v1/api_keys/${keys[0].id}/rotate`, {});
  t.match([status, body.error], [403, { code: 'key_not_allowed', param: 'user_id' }]);
});

t.test('refuses what is no scope, no network and no time to come, and says what is', async (t) => {
  const refusedFor = async (given: Json, param: string | RegExp, message: RegExp) => {
    const body = { name: 'X', scopes: ['programs:read'], ...given };
    const answer = await merchant.request('POST', '/v1/api_keys', body);
    t.match([answer.status, answer.body.error], [400, { param, message }], JSON.stringify(given));
  };
  await refusedFor({ scopes: ['programs:raed'] }, /^scopes/, /is not a scope/);
  await refusedFor({ scopes: [] }, 'scopes', /./);
  await refusedFor({ ip_ranges: ['example.com'] }, /^ip_ranges/, /CIDR/);
  await refusedFor({ ip_ranges: ['0.0.0.0/0'] }, /^ip_ranges/, /CIDR/);
  await refusedFor({ ip_ranges: [] }, 'ip_ranges', /./);
  await refusedFor({ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at', /future/);
});

t.test('networks contain addresses and networks of their own family', (t) => {
  for (const text of ['203.0.113.7', '10.0.0.0/8', '2001:db8::/32', '::1']) t.ok(isNetwork(text), text);
  for (const text of ['', '10.0.0.0/33', '10.0.0.0/0', '::/0', '2001:db8::/129', 'unknown', '10.0.0.0/8/8', '10.0.0/8'])
    t.notOk(isNetwork(text), text);
  const networks = ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'];
  for (const inside of [
    '10.1.2.3',
    '::ffff:10.1.2.3',
    '2001:db8::5',
    '192.0.2.7',
    '10.2.0.0/16',
    '10.0.0.0/8',
    '192.0.2.7/32',
  ])
    t.ok(isWithin(networks, inside), inside);
  for (const outside of ['11.0.0.1', '192.0.2.8', '2001:db9::', 'unknown', '', '10.0.0.0/7', '192.0.2.0/24', '::/1'])
    t.notOk(isWithin(networks, outside), outside);
  t.end();
});
