import t from 'tap';
import { createKey } from '../../../src/core/access/api_key.ts';
import { type Caller, callerOf, eventually, type Json, sql, startRail } from '../../harness.ts';

const rail = await startRail();
const merchant = await rail.organization();
const { organization_id } = merchant;

const ownerOf = async ({ organization_id }: Caller): Promise<Json> => {
  const [owner] = await rail.query(sql`
    select id, email from core.user_account where organization_id = ${organization_id} and role = 'owner'`);
  return owner as Json;
};
const add = (given: Json = {}) => merchant.post('/v1/users', { email: 'grace@acme.example.com', ...given });
/** A key of nobody, which the operator makes: it may change owners. */
const nobody = async ({ organization_id: of }: Caller = merchant): Promise<Caller> => {
  const given = { organization_id: of, name: 'Nobody', scopes: ['*'] };
  const { secret } = await createKey(rail.store.database, { ...given, mode: 'live' });
  return callerOf(rail.address, secret, of);
};

t.test('a person is added, changed, removed with their keys, and added again with the same id', async (t) => {
  const user = await add({ name: 'Grace' });
  t.match(user, { id: /^usr_/, role: 'member', status: 'active', name: 'Grace' });
  const again = await merchant.request('POST', '/v1/users', { email: 'GRACE@acme.example.com' });
  t.match(again, { status: 409, body: { error: { param: 'email' }, existing: { id: user.id } } });
  t.match(await merchant.patch(`/v1/users/${user.id}`, { name: null }), { name: null, role: 'member' });
  for (const role of ['admin', 'finance', 'viewer'])
    t.match(await add({ email: `${role}@acme.example.com`, role }), { role, status: 'active' });
  t.match(
    (await merchant.get('/recruitment/v1/team')).data.find(({ email }: Json) => email.startsWith('finance')),
    {
      role: 'viewer',
    },
  );

  const colleague = await rail.key(organization_id);
  const theirs = (await colleague.get('/v1/users?role=member')).data.find(({ email }: Json) =>
    email.startsWith('colleague'),
  );
  await merchant.delete(`/v1/users/${theirs.id}`);
  const isRefused = async () => (await colleague.request('GET', '/v1/programs')).body.error?.code === 'revoked_api_key';
  await eventually(isRefused, 'the key of who was removed to be refused');
  t.match(await merchant.get(`/v1/users/${theirs.id}`), { status: 'removed' });
  const member = async () => (await merchant.get(`/recruitment/v1/team?user_id=${theirs.id}`)).data[0];
  await eventually(async () => (await member()).status === 'removed', 'them to leave the recruitment team');
  const entries = (await merchant.get(`/v1/audit_log?object_id=${theirs.id}`)).data;
  t.match(entries, [{ operation: 'users.delete' }]);

  await merchant.delete(`/v1/users/${user.id}`);
  t.same(await merchant.request('PATCH', `/v1/users/${user.id}`, { name: 'X' }).then(({ status }) => status), 409);
  t.match(await add({ name: 'Grace Hopper' }), { id: user.id, status: 'active', name: 'Grace Hopper' });
});

t.test('the last owner stays, and keys of members change no owners', async (t) => {
  const owner = await ownerOf(merchant);
  const member = await add({ email: 'hana@acme.example.com' });
  const refused = async (caller: Caller, method: string, id: string, body?: Json) => {
    const { status, body: answer } = await caller.request(method, `/v1/users/${id}`, body);
    return [status, answer.error?.code];
  };
  const free = await nobody();
  t.same(await refused(free, 'DELETE', owner.id), [409, 'invalid_state_transition']);
  t.same(await refused(free, 'PATCH', owner.id, { role: 'member' }), [409, 'invalid_state_transition']);
  t.same(
    await refused(merchant, 'PATCH', member.id, { role: 'owner' }),
    [403, 'key_not_allowed'],
    'its user is a member',
  );
  t.same(await refused(merchant, 'DELETE', owner.id), [403, 'key_not_allowed']);
  const stronger = await merchant.request('POST', '/v1/api_keys', { name: 'X', scopes: ['*'], for_user: false });
  t.match([stronger.status, stronger.body.error], [403, { param: 'scopes' }], 'nor do they make one that does');
  t.match(await free.patch(`/v1/users/${member.id}`, { role: 'owner' }), { role: 'owner' });
  t.match((await merchant.get(`/recruitment/v1/team?user_id=${member.id}`)).data, [{ role: 'owner' }]);
  await free.delete(`/v1/users/${owner.id}`);
  t.same(await refused(free, 'DELETE', member.id), [409, 'invalid_state_transition']);
});

t.test('of two owners who remove each other at once one stays', async (t) => {
  const other = await rail.organization();
  const free = await nobody(other);
  for (const nth of [1, 2, 3]) {
    const [first] = (await free.get('/v1/users?role=owner&status=active')).data;
    const second = await free.post('/v1/users', { email: `owner${nth}@acme.example.com`, role: 'owner' });
    const answers = await Promise.all([first, second].map(({ id }) => free.request('DELETE', `/v1/users/${id}`)));
    t.same(answers.map(({ status }) => status).sort(), [200, 409]);
  }
  t.equal((await free.get('/v1/users?role=owner&status=active')).total_count, 1);
});
