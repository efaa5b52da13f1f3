/** Deals: how terms are agreed, how an agreed deal becomes a partner, and how it is seen that somebody joined. */
import t from 'tap';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { newId } from '../../src/core/values/id.ts';
import { type Caller, eventually, type Json, sql, startRail, startReceiver } from '../harness.ts';
import { all_but_scans } from './event_types.ts';
import { mail, openOutreach } from './outreach/mailed.ts';

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
/** Returns the events about a prospect so far, in their order, without those of its adding. */
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
    [{ coupon_code: '\u0405AVE10' }, 'invalid_parameter', 'terms.coupon_code'],
    [{ coupon_code: 'SAVE\u200b10' }, 'invalid_parameter', 'terms.coupon_code'],
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

t.test('changes of the terms that are sent at once add a version each', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const deal = await open(opened, await add(opened));
  const rates = [2100, 2200, 2300, 2400];
  const sent = await Promise.all(
    rates.map((rate_value) => caller.request('PATCH', `${deals}/${deal.id}`, { terms: { rate_value } })),
  );
  t.same(
    sent.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  t.same(sent.map(({ body }) => body.version).sort(), [2, 3, 4, 5]);
  t.same(
    sent.map(({ body }) => body.terms.rate_value),
    rates,
  );
  t.match(await ask(opened, `${deal.id}/agree`, { version: 2_147_483_648 }), {
    status: 400,
    body: { error: { param: 'version' } },
  });
});

t.test('no statement changes a version, and not even its owner one that is agreed', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const deal = await open(opened, await add(opened));
  await caller.post(`${deals}/${deal.id}/agree`);
  const { organization_id } = caller;
  for (const statement of [
    sql`update recruitment.deal_version set rate_value = 1`,
    sql`delete from recruitment.deal_version`,
  ])
    await t.rejects(
      transaction(rail.store, { organization_id, request_id: null }, (tx) => tx.all(statement)),
      { code: '42501' },
    );
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

/** The deal once its activation has ended. */
async function ended({ caller }: Opened, deal: Json): Promise<Json> {
  let now: Json = {};
  await eventually(async () => {
    now = await caller.get(`${deals}/${deal.id}`);
    return now.status !== 'activating';
  }, 'the activation to end');
  return now;
}

async function activate(opened: Opened, prospect: Json, given: Json = {}): Promise<Json> {
  const deal = await open(opened, prospect, given);
  await opened.caller.post(`${deals}/${deal.id}/agree`);
  t.match(await ask(opened, `${deal.id}/activate`), { status: 202, body: { status: /^activ/ } });
  return ended(opened, deal);
}

const partnersOf = async ({ caller, program_id }: Opened, query = ''): Promise<Json[]> =>
  (await caller.get(`/v1/partners?program_id=${program_id}${query}`)).data;
const sell = ({ caller, program_id }: Opened, partner_id: string, given: Json = {}): Promise<Json> =>
  caller.post('/v1/sales', {
    ...{ program_id, partner_id, amount_minor: 19_999, currency: 'USD', external_charge_id: `ch_${++nth}` },
    ...{ customer: { email: `customer${nth}@example.com`, external_customer_id: `c${nth}` }, ...given },
  });
const earned = (sale: Json): [string, number][] => sale.commissions.map((c: Json) => [c.rule_id, c.amount_minor]);
/** All events of an organization, of both products, in the strict sequence. */
const sequence = async ({ caller }: Opened): Promise<[string, Json][]> => {
  const rows = await rail.query<{ type: string; body: string }>(sql`
    select type, body from webhooks.event where organization_id = ${caller.organization_id} and type not like 'scan.%' order by position`);
  return rows.map(({ type, body }) => [type, JSON.parse(body).data]);
};

t.test('activates a deal: a new partner with the agreed rule, group, coupon and upfront fee', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const group = await caller.post('/v1/groups', { program_id, name: 'Bloggers' });
  await caller.post('/v1/rules', { program_id, name: 'Standard', rate_type: 'percent', rate_value: 500, priority: 9 });
  const prospect = await add(opened, { name: 'The Baking Blog', email: 'Ada@bakingblog.com' });
  const given = { group_id: group.id, coupon_code: 'BAKING10', upfront_fee_minor: 25_000, recurring_months: 12 };
  const deal = await activate(opened, prospect, { ...given, starts_on: '2026-01-01', ends_on: '2026-06-30' });
  t.match(deal, { status: 'active', linked_existing: false, last_error: null, agreed_version: 1, activated_at: /Z$/ });
  const [partner] = await partnersOf(opened);
  t.match(partner, {
    ...{ id: deal.partner_id, email: 'Ada@bakingblog.com', status: 'active', group_id: group.id, company_name: null },
    ...{ display_name: 'The Baking Blog', website_url: prospect.url },
  });
  t.match(await caller.get(`/v1/rules/${deal.rule_id}`), {
    ...{ name: 'Deal: 20% of each sale for 12 months', status: 'active', partner_ids: [deal.partner_id] },
    ...{ rate_type: 'percent', rate_value: 2000 },
    ...{ duration_months: 12, starts_at: '2026-01-01T00:00:00.000Z', ends_at: '2026-07-01T00:00:00.000Z' },
  });
  t.match((await caller.get(`/v1/coupons?program_id=${program_id}`)).data, [
    { code: 'BAKING10', partner_id: deal.partner_id, active: true },
  ]);
  t.match((await caller.get(`/v1/commissions?program_id=${program_id}`)).data, [
    { id: deal.bonus_id, kind: 'bonus', amount_minor: 25_000, currency: 'USD', status: 'due' },
  ]);
  t.match(await get(opened, prospect), { stage: 'active', partner_id: deal.partner_id, deal_id: deal.id });
  const { agreed_by_user_id: by_user_id, partner_id, rule_id } = deal;
  t.match((await sequence(opened)).slice(-5), [
    ['affiliate.created', { partner_id, email: 'Ada@bakingblog.com', status: 'active' }],
    ['affiliate_coupon.created', { partner_id, code: 'BAKING10' }],
    ['commission.created', { partner_id, amount_minor: 25_000 }],
    [
      'affiliate.activated',
      {
        ...{ deal_id: deal.id, prospect_id: prospect.id, program_id, partner_id, rule_id, linked_existing: false },
        terms_summary: 'Percent commission rule, deal version 1',
      },
    ],
    ['affiliate.stage_changed', { from: 'agreed', to: 'active', by_user_id, reason: 'activated' }],
  ]);
  t.match((await told(opened, prospect, 5)).at(-2), ['affiliate.activated', { rule_id }], 'its endpoints are told');
  t.match((await caller.get(`${v1}/prospects/${prospect.id}/activity?kind=activated`)).data, [
    { by_user_id, data: { deal_id: deal.id, version: 1, partner_id } },
  ]);

  // 20 % of 199.99 is 39.998; the days of the terms are those of UTC, both included.
  for (const [occurred_at, expected] of [
    ['2025-12-31T23:59:59.999Z', 1000],
    ['2026-01-01T00:00:00.000Z', 4000],
    ['2026-06-30T23:59:59.999Z', 4000],
    ['2026-07-01T00:00:00.000Z', 1000],
  ] as const) {
    const [[by, amount] = []] = earned(await sell(opened, partner_id, { occurred_at }));
    t.equal(amount, expected, occurred_at);
    t.equal(by === rule_id, expected === 4000);
  }
  const once = await caller.post(`${deals}/${deal.id}/activate`);
  t.same(once, deal, 'asked again, it is done already');
  t.equal((await partnersOf(opened)).length, 1);
});

t.test('a fixed rate pays its minor units, and a sale in another currency nothing', async (t) => {
  const opened = await openBrand();
  const prospect = await add(opened, { email: 'grace@fixedblog.com' });
  const deal = await activate(opened, prospect, { rate_type: 'fixed', rate_value: 777 });
  t.match((await told(opened, prospect, 4))[3], [
    'affiliate.activated',
    { terms_summary: 'Fixed commission rule, deal version 1' },
  ]);
  t.match(await opened.caller.get(`/v1/rules/${deal.rule_id}`), { name: 'Deal: $7.77 for each sale' });
  t.same(earned(await sell(opened, deal.partner_id)), [[deal.rule_id, 777]]);
  t.same(earned(await sell(opened, deal.partner_id, { currency: 'EUR' })), []);
});

t.test('links the partner who has the address, whose other rules it precedes', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const partner = await caller.post('/v1/partners', { program_id, email: 'ada@linked.com' });
  const own = {
    program_id,
    name: 'Own',
    rate_type: 'percent',
    rate_value: 500,
    partner_ids: [partner.id],
    priority: 3,
  };
  await caller.post('/v1/rules', own);
  const coupon = await caller.post('/v1/coupons', { program_id, code: 'LINKED', external_id: 'promo_1' });
  const group = await caller.post('/v1/groups', { program_id, name: 'Bloggers' });
  const prospect = await add(opened, { email: 'first@linked.com' });
  await caller.post(`${v1}/prospects/${prospect.id}/emails`, { email: 'ADA@linked.com' });
  const deal = await activate(opened, prospect, { coupon_code: 'linked', group_id: group.id });
  t.match(deal, { status: 'active', partner_id: partner.id, linked_existing: true });
  t.same(earned(await sell(opened, partner.id)), [[deal.rule_id, 4000]]);
  t.match(await caller.get(`/v1/coupons/${coupon.id}`), { partner_id: partner.id, active: true });
  t.match(await caller.get(`/v1/partners/${partner.id}`), { group_id: group.id });
  const types = (await sequence(opened)).map(([type]) => type).filter((type) => /^affiliate/.test(type));
  t.same(types.slice(-4), [
    ...['affiliate.updated', 'affiliate_coupon.created', 'affiliate.activated', 'affiliate.stage_changed'],
  ]);

  const second = await activate(opened, prospect, { rate_value: 3000, coupon_code: 'LINKED' });
  t.match(second, { status: 'active', partner_id: partner.id, linked_existing: true });
  t.match(await caller.get(`/v1/rules/${deal.rule_id}`), { status: 'inactive' });
  t.same(earned(await sell(opened, partner.id)), [[second.rule_id, 6000]]);
  t.ok(
    (await sequence(opened)).some(
      ([type, { rule_id, status }]) =>
        type === 'rule.status_changed' && rule_id === deal.rule_id && status === 'inactive',
    ),
  );

  await caller.post('/v1/rules', { ...own, priority: 1_000_000 });
  const third = await activate(opened, prospect, { rate_value: 4000 });
  t.same(earned(await sell(opened, partner.id)), [[third.rule_id, 8000]], 'it precedes the highest priority');
  await caller.delete(`${v1}/prospects/${prospect.id}`);
  await activate(opened, await add(opened, { email: 'ada@linked.com' }));
  t.match(await caller.get(`/v1/rules/${third.rule_id}`), { status: 'inactive' }, 'also that of an erased deal');
});

t.test('finds the partner by another spelling of the mailbox, as joining does, and no other mailbox', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const partner = await caller.post('/v1/partners', { program_id, email: 'adalovelace@gmail.com' });
  const other = await caller.post('/v1/partners', { program_id, email: 'graceh@spelling.com' });
  const found = await activate(opened, await add(opened, { email: 'ada.lovelace+deal@googlemail.com' }));
  t.match(found, { status: 'active', partner_id: partner.id, linked_existing: true });
  const tagged = await activate(opened, await add(opened, { email: 'graceh+deals@spelling.com' }));
  t.match(tagged, { status: 'active', partner_id: other.id, linked_existing: true });
  const dotted = await activate(opened, await add(opened, { email: 'grace.h@spelling.com' }));
  t.match(dotted, { status: 'active', linked_existing: false }, 'a dot counts at other hosts');
});

t.test('gives the coupon of a deleted partner to the partner', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const former = await caller.post('/v1/partners', { program_id, email: 'former@coupon.com' });
  const { id } = await caller.post('/v1/coupons', { program_id, code: 'FORMER', partner_id: former.id });
  await caller.delete(`/v1/partners/${former.id}`);
  const deal = await activate(opened, await add(opened, { email: 'next@coupon.com' }), { coupon_code: 'former' });
  t.match(deal, { status: 'active' });
  t.match(await caller.get(`/v1/coupons/${id}`), { partner_id: deal.partner_id, active: true });
});

t.test('the rule of the deal before applies until the terms of a later one start', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const prospect = await add(opened, { email: 'later@deal.com' });
  const first = await activate(opened, prospect, { rate_value: 2000 });
  const starts_at = `${new Date().getUTCFullYear() + 1}-06-01T00:00:00.000Z`;
  const second = await activate(opened, prospect, { rate_value: 3000, starts_on: starts_at.slice(0, 10) });
  t.match(await caller.get(`/v1/rules/${first.rule_id}`), { status: 'active', ends_at: starts_at });
  t.match(await caller.get(`/v1/rules/${second.rule_id}`), { status: 'active', starts_at });
  t.same(earned(await sell(opened, first.partner_id)), [[first.rule_id, 4000]]);
  const third = await activate(opened, prospect, { rate_value: 4000 });
  for (const { rule_id } of [first, second]) {
    t.match(await caller.get(`/v1/rules/${rule_id}`), { status: 'inactive' });
  }
  t.same(earned(await sell(opened, first.partner_id)), [[third.rule_id, 8000]]);
});

t.test('says why an activation failed, leaves nothing of it, and succeeds once the cause is gone', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const pending = { program_id, email: 'pending@failing.com', status: 'pending' };
  const { id: pending_id } = await caller.post('/v1/partners', pending);
  const suspended = await caller.post('/v1/partners', { program_id, email: 'suspended@failing.com' });
  await caller.patch(`/v1/partners/${suspended.id}`, { status: 'suspended' });
  await caller.post('/v1/coupons', { program_id, code: 'TAKEN', partner_id: suspended.id });
  const declined = await caller.post('/v1/partners', { ...pending, email: 'declined@failing.com' });
  const applications = await caller.get(`/v1/applications?program_id=${program_id}`);
  const applicationOf = (id: string) => applications.data.find(({ partner_id }: Json) => partner_id === id).id;
  await caller.post(`/v1/applications/${applicationOf(declined.id)}/reject`);
  const group = await caller.post('/v1/groups', { program_id, name: 'Gone' });
  const state = () =>
    rail.query(sql`
      select (select count(*) from program.partner where program_id = ${program_id}) as partners,
        (select count(*) from program.rule where program_id = ${program_id}) as rules,
        (select count(*) from program.commission where program_id = ${program_id}) as commissions,
        (select count(*) from webhooks.event where program_id = ${program_id}) as events`);
  const before = await state();
  const fails = async (email: string | undefined, last_error: string, given: Json = {}, between = async () => {}) => {
    const prospect = await add(opened, email === undefined ? {} : { email });
    const deal = await open(opened, prospect, { upfront_fee_minor: 100, ...given });
    await caller.post(`${deals}/${deal.id}/agree`);
    await between();
    await caller.post(`${deals}/${deal.id}/activate`);
    const failed = await ended(opened, deal);
    t.match(failed, { status: 'agreed', last_error, partner_id: null, activated_at: null }, last_error);
    t.match(await get(opened, prospect), { stage: 'agreed', partner_id: null });
    return { prospect, deal };
  };
  const { prospect, deal } = await fails(undefined, 'no_address');
  const of_suspended = await fails('suspended@failing.com', 'partner_suspended');
  await fails('declined@failing.com', 'partner_declined');
  const of_pending = await fails('pending@failing.com', 'partner_pending');
  const of_taken = await fails('new@failing.com', 'coupon_taken', { coupon_code: 'taken' });
  t.same(await state(), before, 'nothing is left of it');
  await fails('other@failing.com', 'group_not_found', { group_id: group.id }, async () => {
    await caller.delete(`/v1/groups/${group.id}`);
  });

  const retry = async (failed: Json) => {
    t.match(await caller.post(`${deals}/${failed.id}/activate`), { last_error: null });
    t.match(await ended(opened, failed), { status: 'active', last_error: null });
  };
  await caller.post(`${v1}/prospects/${prospect.id}/emails`, { email: 'late@failing.com' });
  await retry(deal);
  await caller.patch(`/v1/partners/${suspended.id}`, { status: 'active' });
  await retry(of_suspended.deal);
  await caller.post(`/v1/applications/${applicationOf(pending_id)}/approve`);
  await retry(of_pending.deal);
  await caller.post(`${deals}/${of_taken.deal.id}/reopen`);
  await caller.patch(`${deals}/${of_taken.deal.id}`, { terms: { coupon_code: 'FREE' } });
  t.match(await ask(opened, `${of_taken.deal.id}/activate`), {
    status: 409,
    body: { error: { code: 'invalid_state_transition', message: /Agree to a version/ } },
  });
  await caller.post(`${deals}/${of_taken.deal.id}/agree`);
  await retry(of_taken.deal);
});

t.test('two deals of the same person that are activated at once give one partner and one active rule', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  for (let round = 0; round < 2; round++) {
    const email = `same${round}@person.com`;
    const both = await Promise.all(
      [1, 2].map(async () => open(opened, await add(opened, { email }), { upfront_fee_minor: 5 })),
    );
    await Promise.all(both.map(({ id }) => caller.post(`${deals}/${id}/agree`)));
    await Promise.all(both.map(({ id }) => caller.post(`${deals}/${id}/activate`)));
    const done = await Promise.all(both.map((deal) => ended(opened, deal)));
    t.match(done, [{ status: 'active' }, { status: 'active' }]);
    t.equal(new Set(done.map(({ partner_id }) => partner_id)).size, 1);
    t.same(done.map(({ linked_existing }) => linked_existing).sort(), [false, true]);
    const rules = await Promise.all(done.map(({ rule_id }) => caller.get(`/v1/rules/${rule_id}`)));
    t.same(rules.map(({ status }) => status).sort(), ['active', 'inactive']);
    const later = done.find(({ linked_existing }) => linked_existing) as Json;
    t.same(earned(await sell(opened, later.partner_id)), [[later.rule_id, 4000]], 'the later one pays');
    t.equal(
      (await caller.get(`/v1/commissions?program_id=${program_id}&partner_id=${later.partner_id}&kind=bonus`))
        .total_count,
      2,
    );
  }
});

t.test(
  'an activation against a cancel, a reopening and the deletion of the partner: one of them comes first',
  async (t) => {
    const opened = await openBrand();
    const { caller, program_id } = opened;
    for (const other of ['cancel', 'reopen', 'activate', 'delete', 'erase'] as const) {
      for (let round = 0; round < 2; round++) {
        const email = `${other}${round}@race.com`;
        const prospect = await add(opened, { email });
        const partner = other === 'delete' ? await caller.post('/v1/partners', { program_id, email }) : undefined;
        const deal = await open(opened, prospect, { upfront_fee_minor: 7 });
        await caller.post(`${deals}/${deal.id}/agree`);
        const [asked, raced] = await Promise.all([
          ask(opened, `${deal.id}/activate`),
          other === 'delete'
            ? caller.request('DELETE', `/v1/partners/${partner?.id}`)
            : other === 'erase'
              ? caller.request('DELETE', `${v1}/prospects/${prospect.id}`)
              : ask(opened, `${deal.id}/${other}`),
        ]);
        if (other === 'erase') {
          t.equal(raced.status, 200);
          await eventually(idle, 'the jobs to end');
          continue;
        }
        const now = await ended(opened, deal);
        const bonuses = await partnersOf(opened, `&email=${email}`).then(async ([found]) =>
          found
            ? (await caller.get(`/v1/commissions?program_id=${program_id}&partner_id=${found.id}&kind=bonus`)).data
            : [],
        );
        if (now.status === 'active') {
          t.equal(asked.status, 202);
          t.match(raced.status, other === 'delete' ? 200 : other === 'activate' ? 202 : 409);
          const [alive] = await partnersOf(opened, `&email=${email}`);
          if (alive) t.equal(alive.id, now.partner_id);
          t.equal(bonuses.length, alive ? 1 : 0);
        } else {
          t.match([asked.status, raced.status], [409, 200], `${other} came first`);
          t.equal(bonuses.length, 0);
        }
      }
    }
  },
);

const idle = async (): Promise<boolean> => {
  const [row] = await rail.query<{ count: number }>(sql`
    select count(*)::integer as count from graphile_worker.jobs where task_identifier = 'recruitment/activate_deal'`);
  return row?.count === 0;
};

/** Lets the service look for those who joined, as it does each minute. */
async function observe(): Promise<void> {
  tick = new Date(Date.parse(tick) + 60_000).toISOString();
  await rail.tick('recruitment/follow_programs', tick);
  await eventually(async () => {
    const [row] = await rail.query<{ count: number }>(sql`
      select count(*)::integer as count from graphile_worker.jobs
      where task_identifier in ('recruitment/follow_programs', 'recruitment/observe_joining')`);
    return row?.count === 0;
  }, 'the programs to be followed');
}
let tick = '2030-01-01T00:00:00.000Z';

const invite = ({ caller }: Opened, { id }: Json): Promise<Json> =>
  caller.post(`${v1}/prospects/${id}/invite`, { via: 'mark' });
/** Returns the events about joining, by prospect: the source. */
const joined = async (opened: Opened): Promise<[string, string][]> =>
  (await sequence(opened))
    .filter(([type]) => type === 'affiliate.signed_up')
    .map(([, { prospect_id, source }]) => [prospect_id, source]);

t.test('two people who are promised the same coupon at once: one gets it, the other deal says so', async (t) => {
  const opened = await openBrand();
  for (let round = 0; round < 2; round++) {
    const both = await Promise.all(
      [1, 2].map(async (n) =>
        open(opened, await add(opened, { email: `coupon${n}@round${round}.com` }), { coupon_code: `ROUND${round}` }),
      ),
    );
    await Promise.all(both.map(({ id }) => opened.caller.post(`${deals}/${id}/agree`)));
    await Promise.all(both.map(({ id }) => opened.caller.post(`${deals}/${id}/activate`)));
    const done = await Promise.all(both.map((deal) => ended(opened, deal)));
    t.same(done.map(({ status, last_error }) => [status, last_error]).sort(), [
      ['active', null],
      ['agreed', 'coupon_taken'],
    ]);
  }
  t.equal((await partnersOf(opened)).length, 2);
});

/** Waits until a session waits for a lock that another one holds. */
const blocked = () =>
  eventually(async () => {
    const waiting = await rail.query(sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%program.partner%'`);
    return waiting.length > 0;
  }, 'the activation to wait');

t.test(
  'an activation waits for a deletion of the partner that has begun, and then makes another partner',
  async (t) => {
    const opened = await openBrand();
    const { caller, program_id } = opened;
    const partner = await caller.post('/v1/partners', { program_id, email: 'deleted@race.com' });
    const deal = await open(opened, await add(opened, { email: 'deleted@race.com' }));
    await caller.post(`${deals}/${deal.id}/agree`);
    const client = await rail.store.database.connect();
    await client.query('begin');
    await client.query('update program.partner set deleted_at = now() where id = $1', [partner.id]);
    await caller.post(`${deals}/${deal.id}/activate`);
    await blocked();
    const cancelled = ask(opened, `${deal.id}/cancel`);
    await client.query('commit');
    client.release();
    t.match(await cancelled, { status: 409 }, 'it cannot be cancelled meanwhile');
    const done = await ended(opened, deal);
    t.match(done, { status: 'active', linked_existing: false });
    t.not(done.partner_id, partner.id);
    t.match(await caller.delete(`/v1/partners/${done.partner_id}`), { deleted: true });
    t.match(await caller.get(`${deals}/${deal.id}`), { status: 'active' }, 'a later deletion leaves the deal as it is');
  },
);

t.test('a deal ends the outreach to its prospect, whatever the stage', async (t) => {
  const outreach = await openOutreach(rail);
  const { caller } = outreach;
  const { id: program_id } = await addProgram(caller);
  for (const stage of ['contacted', 'active']) {
    const { prospect_id } = await mail(rail, outreach);
    await rail.query(sql`update recruitment.prospect set stage = ${stage} where id = ${prospect_id}`);
    const states = () =>
      rail.query(sql`select open from recruitment.sequence where prospect_id = ${prospect_id} and open`);
    t.equal((await states()).length, 1);
    await caller.post(deals, { prospect_id, program_id, terms });
    t.same(await states(), []);
    t.equal((await caller.get(`${v1}/prospects/${prospect_id}`)).stage, stage === 'active' ? 'active' : 'negotiating');
  }
});

t.test('sees that invited prospects join the program of the brand, each once, by whichever way', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const by_api = await add(opened, { email: 'Ada.Joins+ads@gmail.com' });
  const by_form = await add(opened, { email: 'grace@joining.com' });
  const by_token = await add(opened, { email: 'old@joining.com' });
  const uninvited = await add(opened, { email: 'uninvited@joining.com' });
  const before = await add(opened, { email: 'before@joining.com' });
  const elsewhere = await add(opened, { email: 'elsewhere@joining.com' });
  await caller.post('/v1/partners', { program_id, email: 'before@joining.com' });
  const invited: Json[] = [];
  for (const prospect of [by_api, by_form, by_token, before, elsewhere]) invited.push(await invite(opened, prospect));
  const token = invited[2]?.invitation_token;
  t.match(token, /^[0-9a-f]{32}$/);
  t.equal(uninvited.invitation_token, null);

  const partner = await caller.post('/v1/partners', { program_id, email: 'adajoins@googlemail.com' });
  const pending = await caller.post('/v1/applications', { program_id, email: 'Grace@joining.com', answers: {} });
  const answer = await caller.post('/v1/partners', { program_id, email: 'new@joining.com', invitation_token: token });
  t.notOk('invitation_token' in answer);
  await caller.post('/v1/partners', { program_id, email: 'uninvited@joining.com', invitation_token: 'unknown' });
  const other = await addProgram(caller);
  await caller.post('/v1/partners', { program_id: other.id, email: 'elsewhere@joining.com' });
  await observe();
  t.same(await joined(opened), [
    [by_api.id, 'rail'],
    [by_form.id, 'rail'],
    [by_token.id, 'rail'],
  ]);
  t.match(await get(opened, by_api), { stage: 'active', partner_id: partner.id, signed_up_at: /Z$/ });
  t.match(await get(opened, by_token), { partner_id: answer.id });
  t.match(await get(opened, before), { stage: 'found', partner_id: null, signed_up_at: null });
  t.match(await told(opened, by_api, 3), [
    ['affiliate.invited'],
    ['affiliate.signed_up', { source: 'rail' }],
    ['affiliate.stage_changed', { from: 'found', to: 'active', by_user_id: null, reason: 'signed_up' }],
  ]);

  await caller.post(`/v1/applications/${pending.id}/approve`);
  await caller.post('/v1/partners', { program_id, email: 'another@joining.com', invitation_token: token });
  await observe();
  t.equal((await joined(opened)).length, 3, 'the approval and a second partner tell nothing again');
  t.match(await get(opened, by_token), { partner_id: answer.id });
});

t.test('a partner who waited before the invitation joins by the approval', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const application = await caller.post('/v1/applications', { program_id, email: 'waits@approval.com', answers: {} });
  const prospect = await add(opened, { email: 'waits@approval.com' });
  await invite(opened, prospect);
  await observe();
  t.same(await joined(opened), []);
  await caller.post(`/v1/applications/${application.id}/approve`);
  await observe();
  t.same(await joined(opened), [[prospect.id, 'rail']]);
});

t.test('a partner whom an activation made tells no signed_up, one whom it found does', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const made = await add(opened, { email: 'made@activation.com' });
  const same_person = await add(opened, { email: 'made@activation.com' });
  const found = await add(opened, { email: 'found@activation.com' });
  for (const prospect of [made, same_person, found]) await invite(opened, prospect);
  await caller.post('/v1/partners', { program_id, email: 'found@activation.com' });
  t.match(await activate(opened, made), { status: 'active', linked_existing: false });
  t.match(await activate(opened, found), { status: 'active', linked_existing: true });
  await observe();
  t.same(await joined(opened), [[found.id, 'rail']]);
});

t.test('loses no event of a program to one that commits later, and reads none twice', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const { organization_id } = caller;
  const late = await add(opened, { email: 'late@commits.com' });
  const early = await add(opened, { email: 'early@commits.com' });
  for (const prospect of [late, early]) await invite(opened, prospect);
  const client = await rail.store.database.connect();
  await client.query('begin');
  // A transaction has drawn its position and has not committed yet.
  const body = JSON.stringify({ data: { partner_id: 'part_late', email: 'late@commits.com' } });
  const event = { id: newId('evt'), program_id, partner_id: null, type: 'affiliate.created', livemode: true, body };
  const given = JSON.stringify([{ ...event, postback_body: null, chat_text: null }]);
  await client.query('select webhooks.write_events($1, null, clock_timestamp(), $2::json, $3)', [
    ...[organization_id, given, 'whd'],
  ]);
  await caller.post('/v1/partners', { program_id, email: 'early@commits.com' });
  await observe();
  t.same(await joined(opened), [], 'what follows it waits for it');
  await client.query('commit');
  client.release();
  await observe();
  t.same(await joined(opened), [
    [late.id, 'rail'],
    [early.id, 'rail'],
  ]);
  const cursor = () =>
    rail.query(sql`select position from recruitment.joining_cursor where organization_id = ${organization_id}`);
  const before = await cursor();
  await caller.post('/v1/partners', { program_id, email: 'nobody@commits.com' });
  await observe();
  t.same(await cursor(), before, 'nobody is waited for: nothing is read');
});

t.test('who was marked as signed up by hand is not told again, and an erased prospect not at all', async (t) => {
  const opened = await openBrand();
  const { caller, program_id } = opened;
  const by_hand = await add(opened, { email: 'hand@told.com' });
  const erased = await add(opened, { email: 'erased@told.com' });
  const waiting = await add(opened, { email: 'waiting@told.com' });
  for (const prospect of [by_hand, erased, waiting]) await invite(opened, prospect);
  await caller.post(`${v1}/prospects/${by_hand.id}/signed_up`);
  for (const name of ['hand', 'erased']) await caller.post('/v1/partners', { program_id, email: `${name}@told.com` });
  await caller.delete(`${v1}/prospects/${erased.id}`);
  await observe();
  t.same(await joined(opened), [[by_hand.id, 'manual']]);
});
