/** Deals: how terms are agreed, how an agreed deal becomes a partner, and how it is seen that somebody joined. */
import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { all_but_scans } from './event_types.ts';

const rail = await startRail();
const v1 = '/recruitment/v1';
const deals = `${v1}/deals`;

async function openBrand() {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  await caller.post(`${v1}/webhook_endpoints`, { url: receiver.url, event_types: all_but_scans });
  const program = await addProgram(caller);
  const body = { name: 'Acme', website_url: 'https://acme.example.com', program_id: program.id };
  const brand = await caller.post(`${v1}/brands`, body);
  return { caller, receiver, brand_id: brand.id as string, program_id: program.id as string };
}
type Opened = Awaited<ReturnType<typeof openBrand>>;

let nth = 0;
const addProgram = (caller: Caller): Promise<Json> =>
  caller.post('/v1/programs', { name: `Acme ${++nth}`, website_url: 'https://acme.example.com', currency: 'USD' });
const add = ({ caller, brand_id }: Opened, given: Json = {}): Promise<Json> =>
  caller.post(`${v1}/prospects`, { brand_id, channel: 'website', key: `blog${++nth}.com`, ...given });
const get = ({ caller }: Opened, { id }: Json): Promise<Json> => caller.get(`${v1}/prospects/${id}`);
const terms = { rate_type: 'percent', rate_value: 2000, currency: 'USD' };
const open = ({ caller, program_id }: Opened, prospect: Json, given: Json = {}): Promise<Json> =>
  caller.post(deals, { prospect_id: prospect.id, program_id, terms: { ...terms, ...given } });
const ask = ({ caller }: Opened, path: string, body?: Json) => caller.request('POST', `${deals}/${path}`, body);
/** What was told of a prospect so far, in the order of the events, without their adding. */
const told = async ({ receiver }: Opened, { id }: Json, count: number): Promise<[string, Json][]> => {
  const events = () =>
    receiver.received.filter(({ body }) => body.data.prospect_id === id && !/added|revealed/.test(body.type));
  await eventually(() => events().length >= count, `${count} events`);
  return events().map(({ body: { type, data } }) => {
    const { prospect_id: _, ...rest } = data;
    return [type, rest];
  });
};

t.test('makes a deal, changes its terms by versions, and freezes the version that is agreed', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const prospect = await add(opened);
  const deal = await open(opened, prospect, { recurring_months: 12, text: 'Two posts a month.' });
  t.match(deal, {
    ...{ object: 'deal', id: /^fdl_/, status: 'draft', version: 1, agreed_version: null, brand_id: opened.brand_id },
    terms: { ...terms, recurring_months: 12, group_id: null, coupon_code: null, starts_on: null, ends_on: null },
    ...{ prospect_id: prospect.id, program_id: opened.program_id, partner_id: null, last_error: null },
  });
  t.match(await get(opened, prospect), { stage: 'negotiating', deal_id: deal.id });
  const changed = await caller.patch(`${deals}/${deal.id}`, { terms: { rate_value: 2500, text: null } });
  t.match(changed, { version: 2, terms: { rate_value: 2500, recurring_months: 12, text: null } });
  t.equal((await caller.patch(`${deals}/${deal.id}`, { terms: { rate_value: 2500 } })).version, 2);
  const versions = await caller.get(`${deals}/${deal.id}/versions`);
  t.match(versions, {
    data: [
      { object: 'deal_version', version: 2, terms: { rate_value: 2500 } },
      { version: 1, terms: { rate_value: 2000 } },
    ],
    total_count: 2,
  });

  const agreed = await caller.post(`${deals}/${deal.id}/agree`, { version: 1, agreed_by: 'member' });
  const { agreed_by_user_id } = agreed;
  t.match(agreed, { status: 'agreed', agreed_version: 1, agreed_by: 'member', terms: { rate_value: 2000 } });
  t.match(agreed_by_user_id, /^usr_/);
  t.match(await get(opened, prospect), { stage: 'agreed' });
  t.match(await caller.request('PATCH', `${deals}/${deal.id}`, { terms: { rate_value: 1 } }), {
    status: 409,
    body: { error: { code: 'invalid_state_transition', message: /Reopen the deal/ } },
  });
  t.same((await caller.post(`${deals}/${deal.id}/agree`)).updated_at, agreed.updated_at);
  t.equal((await ask(opened, `${deal.id}/agree`, { version: 2 })).status, 409);
  const by_user_id = agreed_by_user_id;
  t.same(await told(opened, prospect, 3), [
    ['affiliate.stage_changed', { from: 'found', to: 'negotiating', by_user_id, reason: 'deal_created' }],
    ['deal.agreed', { deal_id: deal.id, version: 1, agreed_by: agreed_by_user_id }],
    ['affiliate.stage_changed', { from: 'negotiating', to: 'agreed', by_user_id, reason: 'deal_agreed' }],
  ]);
  t.notMatch(JSON.stringify(opened.receiver.received), /rate_value|Two posts/, 'events hold no terms');

  const reopened = await caller.post(`${deals}/${deal.id}/reopen`);
  t.match(reopened, { status: 'draft', version: 2, agreed_version: null, terms: { rate_value: 2500 } });
  const by_prospect = await caller.post(`${deals}/${deal.id}/agree`, { agreed_by: 'prospect' });
  t.match(by_prospect, { agreed_version: 2, agreed_by: 'prospect' });
  t.match((await told(opened, prospect, 4)).at(-1), ['deal.agreed', { version: 2, agreed_by: null }]);
  t.match((await caller.get(`${v1}/prospects/${prospect.id}/activity?limit=4`)).data, [
    { kind: 'deal_agreed', data: { deal_id: deal.id, version: 2, agreed_by: 'prospect' } },
    { kind: 'deal_reopened' },
    { kind: 'stage_changed' },
    { kind: 'deal_agreed' },
  ]);
});

t.test('a key of no person agrees for nobody', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  await rail.query(sql`update core.api_key set user_id = null where organization_id = ${caller.organization_id}`);
  const prospect = await add(opened);
  const deal = await open(opened, prospect);
  t.match(await caller.post(`${deals}/${deal.id}/agree`), { agreed_by: 'member', agreed_by_user_id: null });
  t.match((await told(opened, prospect, 3))[1], ['deal.agreed', { agreed_by: null }]);
});

t.test('refuses terms that contradict each other or the program, and names the field', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const other = await addProgram(caller);
  const { data } = await caller.get(`/v1/groups?program_id=${other.id}`);
  const prospect = await add(opened);
  for (const [given, code, param] of [
    [{ rate_value: 1_000_001 }, 'invalid_parameter', 'terms.rate_value'],
    [{ rate_value: -1 }, 'invalid_parameter', 'terms.rate_value'],
    [{ rate_value: 12.5 }, 'invalid_parameter', 'terms.rate_value'],
    [{ rate_type: 'share' }, 'invalid_parameter', 'terms.rate_type'],
    [{ currency: 'XXQ' }, 'invalid_parameter', 'terms.currency'],
    [{ rate_type: 'fixed', currency: 'EUR' }, 'currency_mismatch', 'terms.currency'],
    [{ recurring_months: 0 }, 'invalid_parameter', 'terms.recurring_months'],
    [{ upfront_fee_minor: 0 }, 'invalid_parameter', 'terms.upfront_fee_minor'],
    [{ coupon_code: '' }, 'invalid_parameter', 'terms.coupon_code'],
    [{ starts_on: '2026-02-30' }, 'invalid_parameter', 'terms.starts_on'],
    [{ starts_on: '2026-12-02', ends_on: '2026-12-01' }, 'invalid_parameter', 'terms.ends_on'],
    [{ group_id: data[0].id }, 'resource_not_found', 'terms.group_id'],
    [{ rate_percent: 20 }, 'unknown_parameter', 'terms.rate_percent'],
    [{ rate_type: undefined }, 'missing_parameter', 'terms.rate_type'],
  ] as const) {
    const answer = await caller.request('POST', deals, {
      ...{ prospect_id: prospect.id, program_id, terms: { ...terms, ...given } },
    });
    t.match(answer.body, { error: { code, param } }, `${JSON.stringify(given)} ${answer.text}`);
  }
  const deal = await open(opened, prospect, { starts_on: '2026-12-01', ends_on: '2026-12-01' });
  t.match(await caller.request('PATCH', `${deals}/${deal.id}`, { terms: { ends_on: '2026-11-30' } }), {
    status: 400,
    body: { error: { param: 'terms.ends_on' } },
  });
  t.match(await ask(opened, `${deal.id}/agree`, { version: 2 }), {
    status: 400,
    body: { error: { param: 'version' } },
  });
  t.match(await caller.request('POST', deals, { prospect_id: 'sample_fdi_01', program_id, terms }), {
    status: 409,
    body: { error: { code: 'sample_prospect' } },
  });
});

t.test('keeps one open deal for each prospect and program, also of two that are made at once', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const prospect = await add(opened);
  const both = await Promise.all(
    [1, 2].map(() => caller.request('POST', deals, { prospect_id: prospect.id, program_id, terms })),
  );
  t.same(both.map(({ status }) => status).sort(), [201, 409]);
  const [first] = (await caller.get(`${deals}?prospect_id=${prospect.id}`)).data;
  t.match(both.find(({ status }) => status === 409)?.body, {
    error: { code: 'resource_already_exists', param: 'prospect_id' },
    existing: { id: first.id },
  });
  const other = await addProgram(caller);
  await caller.post(deals, { prospect_id: prospect.id, program_id: other.id, terms });
  t.match(await caller.post(`${deals}/${first.id}/cancel`), { status: 'cancelled', cancelled_at: /Z$/ });
  t.equal((await caller.post(`${deals}/${first.id}/cancel`)).status, 'cancelled', 'cancelled twice is once');
  t.match(await ask(opened, `${first.id}/agree`), { status: 409, body: { error: { message: /Reopen it first/ } } });
  const second = await open(opened, prospect);
  t.match(await ask(opened, `${first.id}/reopen`), { status: 409, body: { existing: { id: second.id } } });
  t.match(await get(opened, prospect), { deal_id: second.id });
  await caller.post(`${deals}/${second.id}/cancel`);
  t.match(await caller.post(`${deals}/${first.id}/reopen`), { status: 'draft', cancelled_at: null });
  t.match(await get(opened, prospect), { deal_id: first.id });
  for (const [filter, count] of [
    [`brand_id=${opened.brand_id}`, 3],
    [`program_id=${program_id}`, 2],
    [`prospect_id=${prospect.id}&status=draft`, 2],
    ['status=cancelled', 1],
  ] as const)
    t.equal((await caller.get(`${deals}?${filter}`)).total_count, count, filter);
});

t.test('no statement changes a version, and not even its owner one that is agreed', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const deal = await open(opened, await add(opened));
  await caller.post(`${deals}/${deal.id}/agree`);
  const { organization_id } = caller;
  await transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    t.same(await tx.all(sql`update recruitment.deal_version set rate_value = 1 returning version`), []);
    t.same(await tx.all(sql`delete from recruitment.deal_version returning version`), []);
  });
  for (const statement of [
    sql`update recruitment.deal_version set rate_value = 1 where deal_id = ${deal.id}`,
    sql`update recruitment.deal_version set ends_on = '2026-12-31' where deal_id = ${deal.id}`,
    sql`update recruitment.deal_version set text = 'More.' where deal_id = ${deal.id}`,
    sql`delete from recruitment.deal_version where deal_id = ${deal.id}`,
  ])
    await t.rejects(rail.query(statement), { code: '23503' });
});

t.test('shows deals to their organization and to live keys alone, and erases them with the prospect', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const prospect = await add(opened);
  const deal = await open(opened, prospect, { text: 'As discussed with Ada.' });
  await caller.post(`${deals}/${deal.id}/agree`);
  const stranger = await rail.organization();
  const test_key = await rail.key(caller.organization_id, { mode: 'test' });
  for (const [method, path, body] of [
    ['GET', `${deals}/${deal.id}`],
    ['GET', `${deals}/${deal.id}/versions`],
    ['PATCH', `${deals}/${deal.id}`, { terms: { rate_value: 1 } }],
    ['POST', `${deals}/${deal.id}/agree`],
    ['POST', `${deals}/${deal.id}/cancel`],
    ['POST', `${deals}/${deal.id}/reopen`],
    ['POST', deals, { prospect_id: prospect.id, program_id, terms }],
  ] as const) {
    t.equal((await stranger.request(method, path, body)).status, 404, `${method} ${path}`);
    t.match(await test_key.request(method, path, body), {
      status: 403,
      body: { error: { code: 'test_key_not_allowed' } },
    });
  }
  const document = await caller.get(`${v1}/prospects/${prospect.id}/export`);
  t.match(document, {
    deals: [{ id: deal.id, status: 'agreed' }],
    deal_versions: [{ deal_id: deal.id, version: 1, terms: { text: 'As discussed with Ada.' } }],
  });
  await caller.delete(`${v1}/prospects/${prospect.id}`);
  t.equal((await caller.request('GET', `${deals}/${deal.id}`)).status, 404);
  t.same(await rail.query(sql`select id from recruitment.deal_version where deal_id = ${deal.id}`), []);
});

t.test('hides the deals of a deleted brand', async (t) => {
  const opened = await openBrand();
  const deal = await open(opened, await add(opened));
  await opened.caller.delete(`${v1}/brands/${opened.brand_id}`);
  t.equal((await opened.caller.request('GET', `${deals}/${deal.id}`)).status, 404);
  t.equal((await opened.caller.get(deals)).total_count, 0);
});
