import pg from 'pg';
import sql, { type Sql } from 'sql-template-tag';
import t, { type Test } from 'tap';
import { type Tx, transaction } from '../../../src/core/postgres/transaction.ts';
import type { Caller as ApiCaller, Operation } from '../../../src/core/resource/operation.ts';
import { api } from '../../../src/program/api.ts';
import { fill } from '../../bench/rows.ts';
import { type Caller, type Json, services, startRail } from '../../harness.ts';

const { operations } = api;
const rail = await startRail({ worker: false });
const acme = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };

const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', acme);
const partners: Json[] = [];
for (let nth = 0; nth < 60; nth++) {
  const status = nth % 3 === 0 ? 'pending' : 'active';
  partners.push(
    await merchant.post('/v1/partners', { program_id: program.id, email: `partner-${nth}@example.com`, status }),
  );
}
const newest_first = partners.map(({ id }) => id).reverse();

/** A list's answer to a query. */
const list = (query: Record<string, string | number> = {}, path = '/v1/partners', caller: Caller = merchant) => {
  const asked = new URLSearchParams({ program_id: program.id, ...stringsOf(query) });
  return caller.request('GET', `${path}?${asked}`);
};
const stringsOf = (query: Record<string, string | number>): Record<string, string> =>
  Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
const idsOf = ({ body }: { body: Json }): string[] => body.data.map(({ id }: Json) => id);

t.test('a list is an envelope of data, has_more and total_count, newest first, 25 a page', async (t) => {
  const { body } = await list();
  t.same(Object.keys(body).sort(), ['data', 'has_more', 'total_count']);
  t.same(idsOf({ body }), newest_first.slice(0, 25));
  t.equal(body.has_more, true);
  t.equal(body.total_count, 60);
});

t.test('limit is an integer from 1 to 100', async (t) => {
  t.equal(idsOf(await list({ limit: 1 })).length, 1);
  const { body } = await list({ limit: 100 });
  t.same(idsOf({ body }), newest_first);
  t.equal(body.has_more, false);
  t.equal((await list({ limit: 60 })).body.has_more, false);
  t.equal((await list({ limit: 59 })).body.has_more, true);
  for (const limit of [0, 101, -1, 1.5, 'all', '', '1e1000', '1e1', '0x10', ' 5', '+5', '5.0']) {
    const { status, body: refused } = await list({ limit });
    t.equal(status, 400, `limit=${limit}`);
    const message = "'limit' must be an integer from 1 to 100.";
    t.match(refused.error, { code: 'invalid_parameter', param: 'limit', message });
  }
});

for (const limit of [7, 60, 100]) {
  t.test(`walking by ${limit} gives the whole list once, in both directions`, async (t) => {
    const forth: string[] = [];
    for (let more = true; more; ) {
      const cursor = forth.at(-1);
      const page = await list({ limit, ...(cursor === undefined ? {} : { starting_after: cursor }) });
      t.equal(page.body.total_count, 60);
      forth.push(...idsOf(page));
      more = page.body.has_more;
    }
    t.same(forth, newest_first);

    const back: string[] = [newest_first.at(-1) as string];
    for (let more = true; more; ) {
      const page = await list({ limit, ending_before: back[0] as string });
      t.equal(page.body.total_count, 60);
      back.unshift(...idsOf(page));
      more = page.body.has_more;
    }
    t.same(back, newest_first);
  });
}

t.test('the page before an object is the one next to it, in the order of the list', async (t) => {
  const page = await list({ limit: 5, ending_before: newest_first[20] as string });
  t.same(idsOf(page), newest_first.slice(15, 20));
  t.equal(page.body.has_more, true);
  const first = await list({ limit: 5, ending_before: newest_first[5] as string });
  t.same(idsOf(first), newest_first.slice(0, 5));
  t.equal(first.body.has_more, false);
  t.same(idsOf(await list({ ending_before: newest_first[0] as string })), []);
  t.same(idsOf(await list({ starting_after: newest_first[59] as string })), []);
});

t.test('a page does not move when objects are added while a caller walks', async (t) => {
  const other = await merchant.post('/v1/programs', acme);
  const add = (email: string) => merchant.post('/v1/partners', { program_id: other.id, email });
  const first = await add('first@example.com');
  const second = await add('second@example.com');
  const page = async (query: Record<string, string | number>) => idsOf(await list({ program_id: other.id, ...query }));
  t.same(await page({ limit: 1 }), [second.id]);
  await add('third@example.com');
  t.same(await page({ limit: 1, starting_after: second.id }), [first.id]);
});

t.test('starting_after with ending_before answers 400', async (t) => {
  const { status, body } = await list({
    starting_after: newest_first[3] as string,
    ending_before: newest_first[9] as string,
  });
  t.equal(status, 400);
  t.match(body.error, { code: 'invalid_parameter', param: 'ending_before' });
});

t.test('a cursor that is unknown, of another program, kind or organization answers 400 invalid_cursor', async (t) => {
  const sibling = await merchant.post('/v1/programs', acme);
  const of_sibling = await merchant.post('/v1/partners', { program_id: sibling.id, email: 'sibling@example.com' });
  const stranger = await rail.organization();
  const foreign = await stranger.post('/v1/programs', acme);
  const of_stranger = await stranger.post('/v1/partners', { program_id: foreign.id, email: 'stranger@example.com' });
  for (const cursor of ['part_nothing', of_sibling.id, of_stranger.id, program.id, 'x'.repeat(500)]) {
    for (const param of ['starting_after', 'ending_before']) {
      const { status, body } = await list({ [param]: cursor });
      t.equal(status, 400, cursor);
      t.match(body.error, { type: 'invalid_request_error', code: 'invalid_cursor', param });
    }
  }
});

t.test('a cursor stays good when its object no longer matches or was deleted', async (t) => {
  const other = await merchant.post('/v1/programs', acme);
  const made: string[] = [];
  for (let nth = 0; nth < 3; nth++) {
    made.push((await merchant.post('/v1/partners', { program_id: other.id, email: `p${nth}@example.com` })).id);
  }
  const [oldest, middle, newest] = made as [string, string, string];
  await merchant.delete(`/v1/partners/${middle}`);
  const page = async (query: Record<string, string>) => idsOf(await list({ program_id: other.id, ...query }));
  t.same(await page({ starting_after: middle }), [oldest]);
  t.same(await page({ ending_before: middle }), [newest]);
  t.same(await page({ status: 'suspended', starting_after: newest }), []);
});

for (const [plural, foreign] of [
  ['tags', 'tag_nothing'],
  ['groups', 'tag_01kap3b6n8f2v9w4x7y0z1a2b3'],
] as const) {
  t.test(`${plural} can be deleted while they are walked`, async (t) => {
    const [other, sibling] = [await merchant.post('/v1/programs', acme), await merchant.post('/v1/programs', acme)];
    const make = (program_id: string, name: string) => merchant.post(`/v1/${plural}`, { program_id, name });
    const made: Json[] = [];
    for (const name of ['One', 'Two', 'Three']) made.unshift(await make(other.id, name));
    const page = (query: Record<string, string | number>) => list({ program_id: other.id, ...query }, `/v1/${plural}`);
    const [newest, middle] = made as [Json, Json, Json];
    await merchant.delete(`/v1/${plural}/${middle.id}`);
    t.same(idsOf(await page({ limit: 1, starting_after: middle.id })), [made[2]?.id]);
    t.same(idsOf(await page({ ending_before: middle.id })), [newest.id]);
    const gone = await make(sibling.id, 'Five');
    await merchant.delete(`/v1/${plural}/${gone.id}`);
    const prefix = newest.id.split('_')[0];
    for (const cursor of [
      ...[foreign, (await make(sibling.id, 'Four')).id, other.id, gone.id],
      `${prefix}_01kap3b6n8f2v9w4x7y0z1a2b3`,
    ]) {
      const { status, body } = await page({ starting_after: cursor });
      t.match([status, body.error], [400, { code: 'invalid_cursor', param: 'starting_after' }], cursor);
    }
  });
}

t.test('program_id is required, and a list knows its own program alone', async (t) => {
  const { status, body } = await merchant.request('GET', '/v1/partners');
  t.equal(status, 400);
  t.match(body.error, { code: 'missing_parameter', param: 'program_id' });
  const other = await merchant.post('/v1/programs', acme);
  t.same((await list({ program_id: other.id })).body, { data: [], has_more: false, total_count: 0 });
});

t.test('filters narrow a list, together, and total_count counts what they leave', async (t) => {
  const pending = partners.filter(({ status }) => status === 'pending').map(({ id }) => id);
  const { body } = await list({ status: 'pending', limit: 7 });
  t.same(idsOf({ body }), pending.toReversed().slice(0, 7));
  t.equal(body.total_count, 20);
  t.equal(body.has_more, true);
  const next = await list({ status: 'pending', limit: 100, starting_after: idsOf({ body }).at(-1) as string });
  t.same(idsOf(next), pending.toReversed().slice(7));
  t.equal(next.body.total_count, 20, 'whatever the cursor');

  t.same(idsOf(await list({ email: 'PARTNER-7@example.com' })), [partners[7]?.id]);
  t.same(idsOf(await list({ email: 'partner-7@example.com', status: 'pending' })), []);
  t.equal((await list({ group_id: partners[0]?.group_id })).body.total_count, 60);
  t.equal((await list({ group_id: 'grp_nothing' })).body.total_count, 0);

  const unknown = await list({ status: 'asleep' });
  t.equal(unknown.status, 400);
  t.match(unknown.body.error, { code: 'invalid_parameter', param: 'status' });
  t.equal((await list({ email: 'not an address' })).body.error.param, 'email');
});

t.test('created_after and created_before bound the time of creation, half open', async (t) => {
  const at = partners[30]?.created_at;
  const later = partners.filter(({ created_at }) => created_at >= at).map(({ id }) => id);
  t.same(idsOf(await list({ created_after: at, limit: 100 })), later.toReversed());
  t.equal((await list({ created_before: at })).body.total_count, 60 - later.length);
  const elsewhere = new Date(Date.parse(at) + 2 * 3_600_000).toISOString().replace('Z', '+02:00');
  t.equal((await list({ created_after: elsewhere })).body.total_count, later.length, 'in any time zone');
  t.equal((await list({ created_after: 'yesterday' })).body.error.param, 'created_after');
});

t.test('a filter that is given twice is refused', async (t) => {
  const { status, body } = await merchant.request(
    'GET',
    `/v1/partners?program_id=${program.id}&status=active&status=pending`,
  );
  t.equal(status, 400);
  t.equal(body.error.param, 'status');
});

t.test('maturing commissions come oldest first, and walk both ways over equal times', async (t) => {
  const other = await merchant.post('/v1/programs', acme);
  await merchant.post('/v1/rules', { program_id: other.id, name: 'All', rate_type: 'percent', rate_value: 1_000 });
  const { id: partner_id } = await merchant.post('/v1/partners', { program_id: other.id, email: 'earner@example.com' });
  const made: { id: string; mature_at: string }[] = [];
  for (let nth = 0; nth < 24; nth++) {
    const days_ago = [3, 1, 2][nth % 3] as number;
    const { commissions } = await merchant.post('/v1/sales', {
      program_id: other.id,
      partner_id,
      amount_minor: 1_000,
      currency: 'USD',
      external_charge_id: `ch_${nth}`,
      occurred_at: new Date(Date.parse('2026-11-01T00:00:00Z') - days_ago * 86_400_000).toISOString(),
    });
    made.push(commissions[0]);
  }
  const oldest_first = made
    .toSorted((a, b) => a.mature_at.localeCompare(b.mature_at) || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id);
  const page = (query: Record<string, string | number>) =>
    list({ program_id: other.id, ...query }, '/v1/commissions/maturing');

  const forth: string[] = [];
  for (let more = true; more; ) {
    const cursor = forth.at(-1);
    const { body } = await page({ limit: 5, ...(cursor === undefined ? {} : { starting_after: cursor }) });
    t.equal(body.total_count, 24);
    forth.push(...idsOf({ body }));
    more = body.has_more;
  }
  t.same(forth, oldest_first);

  const back = [oldest_first.at(-1) as string];
  for (let more = true; more; ) {
    const { body } = await page({ limit: 5, ending_before: back[0] as string });
    back.unshift(...idsOf({ body }));
    more = body.has_more;
  }
  t.same(back, oldest_first);
});

t.test('every list reads big tables by an index, as the role that reads them', async (t) => {
  const client = await connect(t);
  const tenant = (await filledTenants(client))[9] as Tenant;
  const big = (
    await rail.query<{ relname: string }>(sql`
      select c.relname from pg_class c
      where c.relnamespace in ('program'::regnamespace, 'webhooks'::regnamespace) and c.relkind = 'r' and c.reltuples > 500`)
  ).map(({ relname }) => relname);
  t.ok(big.length >= 20, 'every table that a list shows, and the partitions of those that have them');
  const [seen] = await rail.query<Explained>(
    sql`explain (format json) select from program.sale where product_id = 'none'`,
  );
  t.same(tablesScannedWhole(seen?.['QUERY PLAN'][0].Plan as Plan), ['sale'], 'a scan would be seen');

  for (const operation of operations.filter((one) => one.method === 'GET' && 'starting_after' in shapeOf(one.query))) {
    const shape = shapeOf(operation.query);
    const first = (await listOf(tenant, operation, {})).data[0]?.id ?? '';
    const [prefix] = first.split('_');
    // The organization's own keys and people are few.
    const cursor = ['key', 'usr'].includes(prefix) ? first : `${prefix}_${tenant.tail}`;
    const { limit, program_id: _, expand, include, starting_after, ending_before, ...filters } = shape;
    const relations = expand.unwrap().element.options ?? [];
    const queries: Json[] = [
      {},
      { starting_after: cursor },
      { ending_before: cursor },
      ...Object.keys(filters).map((name) => ({ [name]: filterValue(name, shape) })),
      ...(relations.length > 0 ? [{ expand: relations }] : []),
      ...(include.unwrap().element.options ? [{ include: ['stats'] }] : []),
    ];
    for (const query of queries) {
      const scanned = (await plansOf(client, tenant, operation, query)).flatMap(tablesScannedWhole);
      const offending = scanned.filter((table) => big.includes(table));
      t.same(offending, [], `${operation.name} ${JSON.stringify(query)} scans no big table`);
    }
  }
});

t.test('no list takes a cursor that is unknown, or of another program or organization', async (t) => {
  const tenants = await filledTenants(await connect(t));
  const tenant = tenants[9] as Tenant;
  const strangers = [tenants[8] as Tenant, tenants[0] as Tenant];
  t.equal(strangers[0]?.organization_id, tenant.organization_id);
  let lists = 0;
  for (const operation of operations.filter((one) => one.method === 'GET' && 'starting_after' in shapeOf(one.query))) {
    const [first] = (await listOf(tenant, operation, {})).data;
    const prefix = first.id.slice(0, first.id.lastIndexOf('_'));
    const of_program = 'program_id' in shapeOf(operation.query) || operation.path.includes('{id}');
    const tails = ['01kap3b6n8f2v9w4x7y0z1a2b3', ...strangers.slice(of_program ? 0 : 1).map(({ tail }) => tail)];
    for (const cursor of [...tails.map((tail) => `${prefix}_${tail}`), `${prefix}_`, 'x', `evil_${tenant.tail}`]) {
      for (const param of ['starting_after', 'ending_before'])
        await t.rejects(
          listOf(tenant, operation, { [param]: cursor }),
          { code: 'invalid_cursor', details: { param } },
          `${operation.name} ${param} ${cursor}`,
        );
    }
    lists++;
  }
  t.ok(lists >= 20, `${lists} lists`);
});

// biome-ignore lint/suspicious/noExplicitAny: a query schema's fields are of every kind
const shapeOf = (schema: any): Json => schema.shape ?? {};

/** A value that a filter takes: one of its names, a time, else a text. */
function filterValue(name: string, shape: Json): unknown {
  const known = shape[name].unwrap?.().options;
  if (Array.isArray(known)) return known[0];
  if (/_(after|before)$|^(from|to)$/.test(name)) return new Date().toISOString();
  if (name === 'period') return new Date().toISOString().slice(0, 10);
  if (name === 'timezone') return 'Europe/Berlin';
  return name === 'email' ? 'someone-7@example.com' : 'of-nothing';
}

interface Tenant {
  organization_id: string;
  program_id: string;
  /** The part after the prefix in the id of a row in the middle of each list, and of the newest. */
  tail: string;
  newest: string;
}

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  Plans?: Plan[];
}

/** Reads a list, and handles each of its statements. */
function listOf(
  { organization_id, program_id, newest }: Tenant,
  operation: Operation,
  query: Json,
  note: (statement: Sql, tx: Tx) => void = () => {},
): Promise<Json> {
  return transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
    const noting =
      <T>(ask: (statement: Sql) => Promise<T>) =>
      (statement: Sql) => {
        note(statement, tx);
        return ask(statement);
      };
    const recording = {
      organization_id,
      now: tx.now,
      all: noting((statement) => tx.all(statement)),
      maybe: noting((statement) => tx.maybe(statement)),
      one: noting((statement) => tx.one(statement)),
    } as unknown as Tx;
    const caller = { organization_id, scopes: ['*'] } as ApiCaller;
    const within = 'program_id' in shapeOf(operation.query) ? { program_id } : {};
    const asked = { limit: 25, expand: [], include: [], ...within, ...query };
    const params = operation.path.includes('{id}') ? { id: `whe_${newest}` } : {};
    return (await operation.run({
      asked: undefined,
      ahead: undefined,
      tx: recording,
      caller,
      services,
      params,
      query: asked,
      body: undefined,
    })) as Json;
  });
}

/** The plans of all statements that a list makes: those for its values, and those for any values, which Postgres may keep. */
async function plansOf(client: pg.Client, tenant: Tenant, operation: Operation, query: Json): Promise<Plan[]> {
  const texts: string[] = [];
  const plans: Promise<Plan>[] = [];
  await listOf(tenant, operation, query, (statement, tx) => {
    texts.push(statement.text);
    const own = tx.one<Explained>(sql`explain (format json) ${statement}`);
    plans.push(own.then((row) => row['QUERY PLAN'][0].Plan));
  });
  const generic: Plan[] = [];
  for (const text of texts) generic.push(await explained(client, tenant, text));
  return [...(await Promise.all(plans)), ...generic];
}

type Explained = { 'QUERY PLAN': [{ Plan: Plan }] };

const plans_of_texts = new Map<string, Promise<Plan>>();

/** The plan of a statement whatever the values of its parameters, under row-level security: one for all lists that make it. */
function explained(client: pg.Client, tenant: Tenant, text: string): Promise<Plan> {
  const plan = plans_of_texts.get(text) ?? explain(client, tenant, text);
  plans_of_texts.set(text, plan);
  return plan;
}

async function explain(client: pg.Client, { organization_id }: Tenant, text: string): Promise<Plan> {
  await client.query('begin');
  await client.query('select from core.open_request($1, null)', [organization_id]);
  const { rows } = await client.query<Explained>(`explain (generic_plan, format json) ${text}`);
  await client.query('rollback');
  return (rows[0] as Explained)['QUERY PLAN'][0].Plan;
}

const tablesScannedWhole = (plan: Plan): string[] => [
  ...(plan['Node Type'] === 'Seq Scan' ? [plan['Relation Name'] ?? ''] : []),
  ...(plan.Plans ?? []).flatMap(tablesScannedWhole),
];

async function connect(t: Test): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  t.teardown(() => client.end());
  return client;
}

let filled: Promise<Tenant[]> | undefined;

function filledTenants(client: pg.Client): Promise<Tenant[]> {
  filled ??= fillTenants(client);
  return filled;
}

/** Four organizations with six programs each, and a few thousand rows in each table that lists show. */
async function fillTenants(client: pg.Client): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  for (let organization = 0; organization < 4; organization++) {
    const { organization_id, post } = await rail.organization();
    for (let nth = 0; nth < 6; nth++) {
      const { id: program_id } = await post('/v1/programs', acme);
      const tails = await fill(client, { organization_id, program_id }, 60);
      tenants.push({ organization_id, program_id, tail: tails[30] as string, newest: tails[59] as string });
    }
  }
  await client.query('select program.fold_tallies(1000000)');
  await client.query('vacuum (analyze)');
  return tenants;
}
