import t from 'tap';
import { revokeKey } from '../../../src/core/access/api_key.ts';
import { sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

t.test('a revoked key answers 401 revoked_api_key at once, unless its limit is high', async (t) => {
  const merchant = await rail.organization({ rate_limit: 25 });
  await merchant.get('/v1/programs');
  const [{ id } = { id: '' }] = await rail.query<{ id: string }>(
    sql`select id from core.api_key where organization_id = ${merchant.organization_id}`,
  );
  await revokeKey(rail.store.database, id);
  const { status, body } = await merchant.request('GET', '/v1/programs');
  t.equal(status, 401);
  t.match(body.error, { type: 'authentication_error', code: 'revoked_api_key' });
});

t.test('the scheme is Bearer, in any letter case, and nothing else', async (t) => {
  const merchant = await rail.organization();
  const ask = async (authorization: string) => {
    const { status, body } = await merchant.request('GET', '/v1/programs', undefined, { Authorization: authorization });
    return body.error?.code ?? status;
  };
  t.equal(await ask(`bearer ${merchant.key}`), 200);
  t.equal(await ask(`Bearer   ${merchant.key}`), 200);
  t.equal(await ask(merchant.key), 'missing_api_key');
  t.equal(await ask(`Basic ${merchant.key}`), 'missing_api_key');
  t.equal(await ask('Bearer '), 'missing_api_key');
  t.match((await merchant.request('GET', '/v1/programs', undefined, { Authorization: 'Bearer ' })).body.error, {
    param: 'Authorization',
  });
  t.equal(await ask(`Bearer ${merchant.key}x`), 'invalid_api_key');
  t.equal(await ask(`Bearer ${merchant.key.slice(0, -1)}`), 'invalid_api_key');
});

t.test('a key is stored as its SHA-256 alone', async (t) => {
  const { key } = await rail.organization();
  const rows = await rail.query<{ row: string }>(sql`select k::text as row from core.api_key k`);
  t.notOk(rows.some(({ row }) => row.includes(key) || row.includes(key.slice(10))));
});

t.test('a test key stamps X-Rail-Livemode: false and reads and writes the same data', async (t) => {
  const live = await rail.organization();
  const test = await rail.key(live.organization_id, { mode: 'test' });
  t.match(live.key, /^rail_live_/);
  t.match(test.key, /^rail_test_/);

  const program = await live.post('/v1/programs', newProgram);
  const read = await test.request('GET', `/v1/programs/${program.id}`);
  t.strictSame(read.body, program);
  t.equal(read.headers['x-rail-livemode'], 'false');

  const partner = await test.post('/v1/partners', { program_id: program.id, email: 'ada@example.com' });
  const reread = await live.request('GET', `/v1/partners/${partner.id}`);
  t.strictSame(reread.body, partner);
  t.equal(reread.headers['x-rail-livemode'], 'true');
});

t.test('a test key labels its errors too, even where it is not known', async (t) => {
  const live = await rail.organization();
  const test = await rail.key(live.organization_id, { mode: 'test' });
  const labelOf = async (path: string, headers = {}) =>
    (await test.request('GET', path, undefined, headers)).headers['x-rail-livemode'];
  t.equal(await labelOf('/v1/programs/prg_nothing'), 'false');
  t.equal(await labelOf('/v1/nothing'), 'false');
  t.equal(await labelOf('/v1/programs', { Authorization: 'Bearer rail_test_nobody' }), 'false');
});

t.test('the scope * allows everything, *:read every reading and no writing', async (t) => {
  const all = await rail.organization({ scopes: ['*'] });
  const program = await all.post('/v1/programs', newProgram);
  const reader = await rail.key(all.organization_id, { scopes: ['*:read'] });
  t.equal((await reader.get(`/v1/programs/${program.id}`)).id, program.id);
  t.equal((await reader.get(`/v1/webhook_endpoints?program_id=${program.id}`)).total_count, 0);
  const refused = await reader.request('POST', '/v1/programs', newProgram);
  t.equal(refused.status, 403);
  t.match(refused.body.error, { type: 'permission_error', code: 'insufficient_scope', param: 'programs:write' });
});

t.test('a write scope does not read, and a read scope does not write', async (t) => {
  const merchant = await rail.organization({ scopes: ['programs:write'] });
  const { id } = await merchant.post('/v1/programs', newProgram);
  t.equal((await merchant.request('GET', `/v1/programs/${id}`)).body.error.param, 'programs:read');
  const reader = await rail.key(merchant.organization_id, { scopes: ['programs:read'] });
  t.equal((await reader.request('PATCH', `/v1/programs/${id}`, {})).body.error.param, 'programs:write');
});

t.test('inlining a relation needs the read scope of what it shows', async (t) => {
  const merchant = await rail.organization();
  const program = await merchant.post('/v1/programs', newProgram);
  const partner = await merchant.post('/v1/partners', { program_id: program.id, email: 'ada@example.com' });
  const narrow = await rail.key(merchant.organization_id, { scopes: ['partners:read'] });
  t.equal((await narrow.get(`/v1/partners/${partner.id}`)).group_id, partner.group_id);
  for (const path of [
    `/v1/partners/${partner.id}?expand[]=group`,
    `/v1/partners?program_id=${program.id}&expand=group`,
  ]) {
    const { status, body } = await narrow.request('GET', path);
    t.equal(status, 403);
    t.match(body.error, { code: 'insufficient_scope', param: 'groups:read' });
  }
  const wide = await rail.key(merchant.organization_id, { scopes: ['partners:read', 'groups:read'] });
  t.equal((await wide.get(`/v1/partners/${partner.id}?expand[]=group`)).group.id, partner.group_id);
});

t.test('when a key was last used is known', async (t) => {
  const merchant = await rail.organization();
  const lastUsed = async () => {
    const [row] = await rail.query<{ last_used_at: string | null }>(
      sql`select last_used_at from core.api_key where organization_id = ${merchant.organization_id}`,
    );
    return row?.last_used_at ?? null;
  };
  t.equal(await lastUsed(), null);
  await merchant.get('/v1/programs');
  t.type(await lastUsed(), 'string');
});

const newProgram = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
