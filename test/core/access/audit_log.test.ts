import t from 'tap';
import { isLogged } from '../../../src/core/resource/operation.ts';
import { operations } from '../../../src/operations.ts';
import { command } from '../../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();
const shop = await openShop(rail);
const { program_id } = shop;
const { merchant } = shop;

const entries = async (query = ''): Promise<Json[]> => (await merchant.get(`/v1/audit_log?${query}`)).data;

t.test('a change has an entry of who made it, to which object, with which fields, by which request', async (t) => {
  const partner = await shop.partner();
  const { headers } = await merchant.request('PATCH', `/v1/partners/${partner.id}`, {
    first_name: 'Zora',
    last_name: 'Quux',
  });
  const [entry, created] = await entries(`object_id=${partner.id}`);
  const [key] = await rail.query<{ id: string; user_id: string }>(
    sql`select id, user_id from core.api_key where organization_id = ${merchant.organization_id}`,
  );
  t.match(entry, {
    ...{
      object: 'audit_entry',
      operation: 'partners.update',
      object_id: partner.id,
      api_key_id: key?.id,
      user_id: key?.user_id,
    },
    request_id: headers['rail-request-id'],
  });
  t.same(entry?.fields, ['first_name', 'last_name']);
  t.match(created, { operation: 'partners.create', object_id: partner.id });
  t.notMatch(JSON.stringify(entry), /zora/i, 'without values');
  t.match(await entries(`operation=partners.update&api_key_id=${key?.id}`), [{ id: entry?.id }]);
  t.match(await entries(`user_id=${key?.user_id}&object_id=${partner.id}`), [{ id: entry?.id }, { id: created?.id }]);
  t.same(await entries(`object_id=${partner.id}&created_before=2020-01-01T00:00:00Z`), []);
  t.match(await entries(`object_id=${partner.id}&limit=1&starting_after=${entry?.id}`), [{ id: created?.id }]);
  t.same(await merchant.get(`/v1/audit_log/${entry?.id}`), entry);
});

t.test('what is refused, replayed or only asked has none, and neither has what systems send all day', async (t) => {
  const count = async () => (await merchant.get('/v1/audit_log')).total_count;
  const before = await count();
  await merchant.request('PATCH', '/v1/partners/part_unknown', { first_name: 'X' });
  await merchant.request('POST', '/v1/tags', { program_id });
  await merchant.get(`/v1/partners?program_id=${program_id}`);
  const partner = (await merchant.get(`/v1/partners?program_id=${program_id}`)).data[0];
  await shop.referred(partner, { email: 'grace@customer.example.com' });
  t.equal(await count(), before);
  const tag = { program_id, name: 'Once' };
  for (const _ of [1, 2]) await merchant.post('/v1/tags', tag, { 'Idempotency-Key': 'once' });
  t.equal(await count(), before + 1);
});

t.test('a change and its entry commit together or not at all', async (t) => {
  await rail.query(
    sql`alter table core.audit_entry add constraint refuses check (operation <> 'tags.create') not valid`,
  );
  const { status } = await merchant.request('POST', '/v1/tags', { program_id, name: 'Lost' });
  await rail.query(sql`alter table core.audit_entry drop constraint refuses`);
  t.equal(status, 500);
  t.notOk((await merchant.get(`/v1/tags?program_id=${program_id}`)).data.some(({ name }: Json) => name === 'Lost'));
});

t.test('nobody changes an entry over the API, and none is seen by another organization', async (t) => {
  const [entry] = await entries();
  t.equal((await merchant.request('DELETE', `/v1/audit_log/${entry?.id}`)).status, 405);
  const other = await rail.organization();
  t.equal((await other.request('GET', `/v1/audit_log/${entry?.id}`)).status, 404);
});

t.test('the command line is in it, too', async (t) => {
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const rail_command = async (...given: string[]): Promise<Json> => {
    const { code, stdout, stderr } = await command([...given, '--json'], environment);
    t.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const org = ['--org', merchant.organization_id];
  const user = await rail_command('user', 'create', ...org, '--email', 'ops@acme.example.com');
  const key = await rail_command('key', 'create', ...org, '--name', 'Ops', '--user', user.id);
  await rail_command('key', 'update', key.id, '--ip', '203.0.113.0/24');
  await rail_command('key', 'revoke', key.id);
  await rail_command('org', 'plan', ...org, '--plan', 'grow');
  const by_hand = (operation: string, object_id: string | null) => ({
    operation,
    object_id,
    api_key_id: null,
    request_id: null,
  });
  t.match(await entries('limit=5'), [
    by_hand('plan.update', null),
    by_hand('api_keys.revoke', key.id),
    { ...by_hand('api_keys.update', key.id), fields: ['ip_ranges'] },
    by_hand('api_keys.create', key.id),
    by_hand('users.create', user.id),
  ]);
});

t.test('entries go when they are old', async (t) => {
  await rail.query(sql`
    insert into core.audit_entry (organization_id, id, operation, fields, created_at)
    values (${merchant.organization_id}, core.new_id('aud'), 'old', '{}', now() - interval '401 days')`);
  await rail.tick('core/purge_expired', new Date().toISOString());
  await eventually(async () => (await entries('operation=old')).length === 0, 'the old entry to go');
  t.not((await entries()).length, 0);
});

t.test('all operations are in it that change something, but for a list that the description shows', async (t) => {
  const silent = operations.filter((one) => one.method !== 'GET' && !isLogged(one, {})).map(({ name }) => name);
  t.ok(silent.length < 20);
  for (const name of [
    'partners.update',
    'api_keys.create',
    'payouts.mark_paid',
    'commissions.update',
    'rails.put',
    'customers.delete',
  ])
    t.notOk(silent.includes(name), name);
  const { list_doc } = { list_doc: operations.find(({ name }) => name === 'audit_log.list')?.doc ?? '' };
  for (const name of silent.filter((one) => !one.startsWith('campaigns.'))) t.match(list_doc, name);
});
