import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { changePlan } from '../../src/recruitment/change_plan.ts';
import { type Caller, eventually, sql, startRail, startReceiver } from '../harness.ts';
import { all_but_scans } from './event_types.ts';

const rail = await startRail();
const v1 = '/recruitment/v1';
const brand = { name: 'Acme', website_url: 'https://acme.example.com' };
const onPlan = ({ organization_id }: Caller, name: 'starter' | 'grow') =>
  transaction(rail.store, { organization_id, request_id: null }, (tx) => changePlan(tx, name));

t.test('creates a brand with its defaults, lists, updates and deletes it', async (t) => {
  const caller = await rail.organization();
  const created = await caller.post(`${v1}/brands`, brand);
  t.match(created, {
    ...{ object: 'brand', name: 'Acme', website_url: 'https://acme.example.com/', keywords: [], channels: [] },
    ...{ program_id: null, scan_schedule: 'weekly', scan_weekday: 1, retention_days: 180, default_timezone: 'UTC' },
  });
  t.match(created.id, /^fbr_/);
  const changes = { competitors: ['Rival.Example.com'], languages: ['DE'], countries: ['de'] };
  t.match(await caller.patch(`${v1}/brands/${created.id}`, changes), {
    ...{ competitors: ['rival.example.com'], languages: ['de'], countries: ['DE'] },
  });
  t.same((await caller.get(`${v1}/brands`)).total_count, 1);
  t.match(await caller.request('DELETE', `${v1}/brands/${created.id}`), { status: 200, body: { deleted: true } });
  t.equal((await caller.request('GET', `${v1}/brands/${created.id}`)).status, 404);
  t.same((await caller.get(`${v1}/brands`)).data, []);
});

t.test('names the field that is not valid', async (t) => {
  const caller = await rail.organization();
  for (const [field, value] of Object.entries({
    ...{
      website_url: 'ftp://acme.example.com',
      competitors: ['not a domain'],
      languages: ['german'],
      channels: ['fax'],
    },
    ...{ default_timezone: '+02:00', scan_weekday: 8, scan_ceiling_minor: -1, retention_days: 0, keywords: [' '] },
  })) {
    const answer = await caller.request('POST', `${v1}/brands`, { ...brand, [field]: value });
    t.match(answer, { status: 400, body: { error: { code: 'invalid_parameter' } } }, field);
    t.ok(answer.body.error.param.startsWith(field), answer.body.error.param);
  }
});

t.test('refuses names with line breaks', async (t) => {
  const caller = await rail.organization();
  const name = 'Acme\r\nBcc: x';
  const brand = { name: 'Acme', website_url: 'https://acme.example.com' };
  const { id: brand_id } = await caller.post(`${v1}/brands`, brand);
  for (const [path, body, param] of [
    ['brands', { ...brand, name }, 'name'],
    ['brands', { ...brand, sender_company: name }, 'sender_company'],
    ['team', { email: 'ada@example.com', name }, 'name'],
    ['lists', { brand_id, name }, 'name'],
  ] as const)
    t.match(await caller.request('POST', `${v1}/${path}`, body), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param } },
    });
});

t.test('links a brand to a program of its own organization alone', async (t) => {
  const [caller, other] = [await rail.organization(), await rail.organization()];
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'EUR' };
  const { id: program_id } = await caller.post('/v1/programs', program);
  const linked = await caller.post(`${v1}/brands`, { ...brand, program_id });
  t.equal(linked.program_id, program_id);
  t.match(await other.request('POST', `${v1}/brands`, { ...brand, program_id }), {
    status: 404,
    body: { error: { param: 'program_id' } },
  });
  t.equal((await caller.get(`${v1}/brands?program_id=${program_id}`)).total_count, 1);
});

t.test('a plan has room for its number of brands, also when they are created at once', async (t) => {
  const caller = await rail.organization();
  await onPlan(caller, 'grow');
  const answers = await Promise.all(Array.from({ length: 8 }, () => caller.request('POST', `${v1}/brands`, brand)));
  t.same(answers.map(({ status }) => status).sort(), [201, 201, 201, 402, 402, 402, 402, 402]);
  const refused = answers.find(({ status }) => status === 402);
  t.match(refused?.body.error, { type: 'plan_error', code: 'plan_limit_reached', message: /includes 3 brands/ });
});

t.test('the owner is a team member from the start', async (t) => {
  const caller = await rail.organization();
  const { data } = await caller.get(`${v1}/team?role=owner`);
  t.match(data, [{ object: 'team_member', role: 'owner', user_id: /^usr_/ }]);
  const path = `${v1}/team/${data[0].id}`;
  t.match(await caller.request('PATCH', path, { role: 'viewer' }), {
    status: 409,
    body: { error: { code: 'invalid_state_transition' } },
  });
  t.match(await caller.patch(path, { name: 'Ada' }), { name: 'Ada', role: 'owner' });
});

t.test('adds people once, also when they are added at once', async (t) => {
  const caller = await rail.organization();
  const add = (email: string) => caller.request('POST', `${v1}/team`, { email, name: 'Grace' });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => add(n % 2 ? 'g@example.com' : 'G@example.com')),
  );
  t.same(answers.map(({ status }) => status).sort(), [201, ...Array(7).fill(409)]);
  const added = answers.find(({ status }) => status === 201)?.body;
  t.match(added, { id: /^tm_/, user_id: /^usr_/, name: 'Grace', role: 'member', status: 'invited' });
  t.match(answers.find(({ status }) => status === 409)?.body, {
    error: { param: 'email' },
    existing: { id: added?.id },
  });
});

t.test('a user whom the operator adds is a team member, and active with a key of their own', async (t) => {
  const caller = await rail.organization();
  const user_id = `usr_${'0'.repeat(26)}`;
  await rail.query(sql`
    insert into core.user_account (organization_id, id, email, role)
    values (${caller.organization_id}, ${user_id}, 'op@example.com', 'member')`);
  const mine = () => caller.get(`${v1}/team?user_id=${user_id}`);
  t.match((await mine()).data, [{ role: 'member', status: 'invited', email: 'op@example.com' }]);
  await rail.query(sql`
    update core.api_key set user_id = ${user_id} where organization_id = ${caller.organization_id}`);
  t.match((await mine()).data, [{ status: 'active' }]);

  t.equal((await caller.get(`${v1}/team?status=removed`)).total_count, 0);
});

t.test('a plan has room for its number of seats', async (t) => {
  const caller = await rail.organization();
  await onPlan(caller, 'starter');
  const message =
    "The plan 'starter' includes 1 seat, which is in use. Remove a team member, or ask the operator for another plan.";
  t.match(await caller.request('POST', `${v1}/team`, { email: 'second@example.com' }), {
    status: 402,
    body: { error: { code: 'plan_limit_reached', message } },
  });
  const brand = await caller.post(`${v1}/brands`, { name: 'Acme', website_url: 'https://acme.example.com' });
  const blank = await caller.request('PATCH', `${v1}/brands/${brand.id}`, { name: '  ' });
  t.match(blank, { status: 400, body: { error: { param: 'name', message: /^'name' must not be blank/ } } });
});

const prospect = (caller: Caller, brand_id: string, nth: number, values: { stage?: string; assignee?: string } = {}) =>
  rail.query(sql`
    insert into recruitment.prospect (organization_id, id, brand_id, channel, key, source, stage, assignee_member_id)
    values (${caller.organization_id}, ${`fdi_${String(nth).padStart(26, '0')}`}, ${brand_id}, 'website', ${`site${nth}.example`},
      'api', ${values.stage ?? 'found'}, ${values.assignee ?? null})`);

t.test('counts the prospects of a brand', async (t) => {
  const caller = await rail.organization();
  const { id } = await caller.post(`${v1}/brands`, brand);
  for (const [nth, stage] of ['found', 'interested', 'agreed', 'active'].entries())
    await prospect(caller, id, nth, { stage });
  t.same((await caller.get(`${v1}/brands/${id}?include[]=stats`)).stats, {
    ...{ prospects: 4, saved: 0, contacted: 0, interested: 2, active: 1 },
  });
});

t.test('removes a member, whose prospects nobody owns any more, and adds them again', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const { id: brand_id } = await caller.post(`${v1}/brands`, brand);
  const member = await caller.post(`${v1}/team`, { email: 'grace@example.com', name: 'Grace' });
  for (const nth of [1, 2]) await prospect(caller, brand_id, nth, { assignee: member.id });
  await prospect(caller, brand_id, 3);
  t.match(await caller.request('DELETE', `${v1}/team/${member.id}`), { status: 200, body: { deleted: true } });
  t.match(await caller.request('DELETE', `${v1}/team/${member.id}`), { status: 200 });
  const received = await receiver.until(2);
  t.same(
    received.map(({ body }) => [body.type, body.data.prospect_id.at(-1), body.data.assignee_member_id]),
    [
      ['affiliate.assigned', '1', null],
      ['affiliate.assigned', '2', null],
    ],
  );
  t.match(received[0]?.body.data, { brand_id, previous_member_id: member.id, by_member_id: null });
  t.match(await caller.get(`${v1}/team/${member.id}`), { status: 'removed', name: 'Grace' });
  t.match(await caller.request('PATCH', `${v1}/team/${member.id}`, { name: 'G' }), { status: 409 });
  const again = await caller.post(`${v1}/team`, { email: 'Grace@example.com', role: 'admin' });
  t.match(again, { id: member.id, status: 'invited', role: 'admin', name: 'Grace' });
  const { data } = await caller.get(`${v1}/team?role=owner`);
  t.equal((await caller.request('DELETE', `${v1}/team/${data[0].id}`)).status, 409);
});

t.test('removes a member of many prospects, whom a job takes from them', async (t) => {
  const caller = await rail.organization();
  const { id: brand_id } = await caller.post(`${v1}/brands`, brand);
  const member = await caller.post(`${v1}/team`, { email: 'grace@example.com', name: 'Grace' });
  const many = 1_200;
  await rail.query(sql`
    insert into recruitment.prospect (organization_id, id, brand_id, channel, key, name, source, email_status, assignee_member_id)
    select ${caller.organization_id}, 'fdi_' || core.id_time_part(now()) || 'e00g' || lpad(n::text, 12, '0'), ${brand_id}, 'youtube',
      'channel' || n, 'Blog ' || n, 'manual', 'none', ${member.id}
    from generate_series(1, ${many}) as n`);
  t.match(await caller.delete(`${v1}/team/${member.id}`), { deleted: true });
  const counts = () =>
    rail.query(sql`
      select
        (select count(*)::integer from recruitment.prospect where assignee_member_id = ${member.id}) as assigned,
        (select count(*)::integer from webhooks.event where organization_id = ${caller.organization_id} and type = 'affiliate.assigned') as told,
        (select count(*)::integer from recruitment.activity where organization_id = ${caller.organization_id} and kind = 'assigned') as noted`);
  await eventually(async () => (await counts())[0]?.assigned === 0, 'the job to end', 120_000);
  t.same(await counts(), [{ assigned: 0, told: many, noted: many }]);
});
