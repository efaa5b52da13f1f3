import t from 'tap';
import { type Tx, transaction } from '../../src/core/postgres/transaction.ts';
import { changePlan } from '../../src/recruitment/change_plan.ts';
import { event } from '../../src/recruitment/events/event.ts';
import { refundCredit, spendCredit } from '../../src/recruitment/plan/credit.ts';
import type { PlanName } from '../../src/recruitment/plan/limits.ts';
import { command } from '../command_process.ts';
import { type Caller, encryption_key, type Json, sql, startRail, startReceiver } from '../harness.ts';

const rail = await startRail();
const within = <T>({ organization_id }: Caller, work: (tx: Tx) => Promise<T>, now?: string) =>
  transaction(rail.store, { organization_id, request_id: null, now }, work);
const onPlan = (caller: Caller, name: PlanName) => within(caller, (tx) => changePlan(tx, name));
const plan = (caller: Caller) => caller.get('/recruitment/v1/plan');
const ledger = async (caller: Caller): Promise<Json[]> => (await caller.get('/recruitment/v1/credits?limit=100')).data;

t.test('a new organization has the plan enterprise, without limits', async (t) => {
  const caller = await rail.organization();
  const limits = {
    brands: null,
    inboxes: null,
    seats: null,
    searches_monthly: null,
    reveals_monthly: null,
    daily_sends: null,
  };
  t.same(await plan(caller), {
    ...{ object: 'plan', name: 'enterprise', features: { outreach: true, webhooks: true, weekly_scans: true }, limits },
    credits: { balance: null, spent: 0, refunded: 0, resets_at: null },
    ...{ spending_ceiling_minor: null, spent_minor: 0, currency: 'USD' },
  });
  t.same(await ledger(caller), []);
});

t.test('the limits of the plans are those that are decided', async (t) => {
  const caller = await rail.organization();
  for (const [name, limits] of [
    ['starter', [1, 0, 1, 20, 20, 0]],
    ['grow', [3, 5, 5, 200, 500, 500]],
  ] as const) {
    t.equal(await onPlan(caller, name), name === 'starter' ? 'enterprise' : 'starter');
    const { limits: shown, features, credits } = await plan(caller);
    t.same(Object.values(shown), limits, name);
    t.same(features.webhooks, name === 'grow');
    t.equal(credits.balance, limits[3] + limits[4]);
    t.match(credits.resets_at, /^\d{4}-\d\d-01T00:00:00.000Z$/);
  }
});

t.test('changes the spending ceiling, and nothing else', async (t) => {
  const caller = await rail.organization();
  t.match(await caller.patch('/recruitment/v1/plan', { spending_ceiling_minor: 5_000 }), {
    spending_ceiling_minor: 5_000,
  });
  t.match(await caller.patch('/recruitment/v1/plan', {}), { spending_ceiling_minor: 5_000 });
  t.match(await caller.patch('/recruitment/v1/plan', { spending_ceiling_minor: null }), {
    spending_ceiling_minor: null,
  });
  t.equal((await caller.request('PATCH', '/recruitment/v1/plan', { name: 'grow' })).status, 400);
  t.equal((await caller.request('PATCH', '/recruitment/v1/plan', { spending_ceiling_minor: -1 })).status, 400);
  const too_much = await caller.request('PATCH', '/recruitment/v1/plan', { spending_ceiling_minor: 100_000_000_001 });
  t.match(too_much, { status: 400, body: { error: { code: 'invalid_parameter', param: 'spending_ceiling_minor' } } });
  // One that was stored before there was a most.
  await rail.query(sql`
    update recruitment.plan set spending_ceiling_minor = ${Number.MAX_SAFE_INTEGER} where organization_id = ${caller.organization_id}`);
  const brand = await caller.post('/recruitment/v1/brands', { name: 'Acme', website_url: 'https://acme.example.com' });
  const search = { brand_id: brand.id, search_type: 'keyword', query: 'bread' };
  t.equal((await caller.request('POST', '/recruitment/v1/searches', search)).status, 202);
  for (const [method, path, body] of [
    ['PATCH', `brands/${brand.id}`, { scan_ceiling_minor: 100_000_000_001 }],
    ['POST', 'searches', { ...search, ceiling_minor: 100_000_000_001 }],
  ] as const)
    t.match(await caller.request(method, `/recruitment/v1/${path}`, body), {
      status: 400,
      body: { error: { code: 'invalid_parameter', param: Object.keys(body).at(-1) } },
    });
});

t.test('credits are spent and refunded in the ledger, and those of a new month replace what was left', async (t) => {
  const caller = await rail.organization();
  await onPlan(caller, 'starter');
  await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: 'fsc_1' }));
  await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: 'fdi_1' }));
  await within(caller, (tx) => refundCredit(tx, 'reveal', { prospect_id: 'fdi_1' }));
  t.match((await plan(caller)).credits, { balance: 39, spent: 2, refunded: 1 });
  t.match((await ledger(caller)).map(({ kind, amount, balance, reason }) => [kind, amount, balance, reason]).sort(), [
    ['grant', 40, 40, 'plan_changed'],
    ['refund', 1, 39, 'reveal'],
    ['spend', -1, 38, 'reveal'],
    ['spend', -1, 39, 'reveal'],
  ]);
  const later = new Date(Date.now() + 40 * 86_400_000).toISOString();
  await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: 'fsc_2' }), later);
  const [account] = await rail.query(
    sql`select credit_balance from recruitment.plan where organization_id = ${caller.organization_id}`,
  );
  t.same(account, { credit_balance: 39 });
  t.match(
    (await ledger(caller)).find(({ reason }) => reason === 'month_began'),
    { kind: 'grant', amount: 1, balance: 40 },
  );
});

t.test('50 at once with 10 credits make 10', async (t) => {
  const caller = await rail.organization();
  await onPlan(caller, 'starter');
  for (let nth = 0; nth < 30; nth++)
    await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: `fsc_${nth}` }));
  const spent = await Promise.allSettled(
    Array.from({ length: 50 }, (_, nth) =>
      within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: `fsc_${nth}` })),
    ),
  );
  const refused = spent.filter((one) => one.status === 'rejected');
  t.equal(refused.length, 40);
  for (const { reason } of refused) t.match(reason, { code: 'no_credits', status: 402 });
  t.match((await plan(caller)).credits, { balance: 0, spent: 40 });
  t.same(await rail.audit(), []);
});

t.test('enterprise keeps its ledger and is never refused', async (t) => {
  const caller = await rail.organization();
  for (const nth of [1, 2]) await within(caller, (tx) => spendCredit(tx, 'reveal', { prospect_id: `fsc_${nth}` }));
  t.match((await plan(caller)).credits, { balance: null, spent: 2 });
  t.equal((await ledger(caller)).length, 2);
  await onPlan(caller, 'grow');
  t.match((await plan(caller)).credits, { balance: 700, spent: 2 });
});

t.test('the database takes no entry that does not follow the one before, and no balance of its own', async (t) => {
  const caller = await rail.organization();
  await onPlan(caller, 'starter');
  const { organization_id } = caller;
  for (const broken of [
    sql`insert into recruitment.credit_entry (organization_id, id, number, kind, amount, balance_before, balance, reason)
      values (${organization_id}, 'fcr_x', 2, 'grant', 5, 41, 46, 'search')`,
    sql`insert into recruitment.credit_entry (organization_id, id, number, kind, amount, balance_before, balance, reason)
      values (${organization_id}, 'fcr_x', 3, 'grant', 5, 40, 45, 'search')`,
    sql`insert into recruitment.credit_entry (organization_id, id, number, kind, amount, balance_before, balance, reason)
      values (${organization_id}, 'fcr_x', 2, 'spend', -1, 40, 40, 'search')`,
    sql`update recruitment.credit_entry set balance = 41, amount = 41 where organization_id = ${organization_id}`,
    sql`update recruitment.plan set credit_balance = 41 where organization_id = ${organization_id}`,
    sql`delete from recruitment.credit_entry where organization_id = ${organization_id}`,
  ])
    await t.rejects(rail.query(broken), /violates (foreign key|check) constraint/);
});

t.test('on starter no endpoint can be created, enabled or sent to, and those there are stay', async (t) => {
  const caller = await rail.organization();
  const receiver = await startReceiver();
  const path = '/recruitment/v1/webhook_endpoints';
  const { id } = await caller.post(path, { url: receiver.url });
  const tell = (tx: Tx, nth: number) =>
    tx.emit(
      event('affiliate.hidden', tx.organization_id, {
        ...{ prospect_id: `fdi_${String(nth).padStart(26, '0')}`, reason: 'other' },
      }),
    );
  const told = () => receiver.received.map(({ body }) => Number(body.data.prospect_id.slice(4)));
  await within(caller, async (tx) => {
    tell(tx, 1);
    await changePlan(tx, 'starter');
    tell(tx, 2);
  });
  await within(caller, async (tx) => tell(tx, 3));
  await receiver.until(2);
  for (const [action, body] of [
    ['', { url: receiver.url }],
    [`/${id}/enable`, {}],
    [`/${id}/ping`, {}],
  ] as const)
    t.match(await caller.request('POST', path + action, body), {
      status: 402,
      body: { error: { type: 'plan_error', code: 'feature_not_in_plan' } },
    });
  t.match(await caller.get(`${path}/${id}`), { status: 'enabled' });
  t.equal((await caller.request('POST', `${path}/${id}/disable`)).status, 200);
  await onPlan(caller, 'grow');
  await caller.post(`${path}/${id}/enable`);
  await within(caller, async (tx) => tell(tx, 4));
  await receiver.until(3);
  t.same(told(), [1, 2, 4]);
  t.same(await rail.audit(), []);
});

t.test('rail org plan shows the plan of an organization, and changes it', async (t) => {
  const caller = await rail.organization();
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const run = (...args: string[]) => command(['org', 'plan', '--org', ...args], environment);
  const { organization_id } = caller;
  t.match((await run(organization_id)).stdout, `${organization_id} has the plan enterprise.`);
  t.same(JSON.parse((await run(organization_id, '--plan', 'starter', '--json')).stdout), {
    organization_id,
    plan: 'starter',
  });
  t.match(await plan(caller), { name: 'starter', credits: { balance: 40 } });
  t.match((await run('org_none', '--plan', 'grow')).stderr, "There is no organization 'org_none'.");
});
