/** Tests the answers of GraphQL: rows of schema data in the shape of the REST API, to keys that may read data, and to nobody else. */
import sql from 'sql-template-tag';
import t from 'tap';
import { startRail, startReceiver } from '../../harness.ts';
import { fillOrganization } from '../tenant.ts';
import { graphOf, graphWith } from './client.ts';

const rail = await startRail();
const receiver = await startReceiver();
const { caller, program_id } = await fillOrganization(rail, receiver.url);
const graph = graphOf(caller);

t.test('gives ids, amounts and times as the REST API does', async (t) => {
  const [sale] = (await caller.get(`/v1/sales?program_id=${program_id}&limit=1`)).data;
  const fields = ['id', 'program_id', 'customer_id', 'amount_minor', 'currency', 'status', 'occurred_at', 'created_at'];
  const { sale: row } = await graph.data(`query ($id: String!) { sale(id: $id) { ${fields.join(' ')} metadata } }`, {
    id: sale.id,
  });
  for (const field of fields) t.equal(row[field], sale[field], field);
  t.same(row.metadata, sale.metadata);
});

t.test('shows the terms of a deal that were agreed, not a later version of them', async (t) => {
  const v1 = '/recruitment/v1';
  const brand = await caller.post(`${v1}/brands`, {
    name: 'Acme',
    website_url: 'https://acme.example.com',
    program_id,
  });
  const prospect = await caller.post(`${v1}/prospects`, { brand_id: brand.id, channel: 'website', key: 'blog.com' });
  const terms = { rate_type: 'percent', rate_value: 1000, currency: 'USD' };
  const { id } = await caller.post(`${v1}/deals`, { prospect_id: prospect.id, program_id, terms });
  const rate = async () =>
    (await graph.data('query ($id: String!) { deal(id: $id) { version agreed_version rate_value } }', { id })).deal;
  await caller.patch(`${v1}/deals/${id}`, { terms: { rate_value: 9000 } });
  t.match(await rate(), { version: 2, agreed_version: null, rate_value: 9000 });
  const agreed = await caller.post(`${v1}/deals/${id}/agree`, { version: 1 });
  t.match(await rate(), { version: 2, agreed_version: 1, rate_value: agreed.terms.rate_value });
  await caller.delete(`${v1}/brands/${brand.id}`);
  t.equal(await rate(), null, 'and none of a deleted brand');
});

t.test('pages by cursors, newest first, with the whole count', async (t) => {
  const page = `query ($first: Int, $after: Cursor) {
    sales(first: $first, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } totalCount }
  }`;
  const all: string[] = (await graph.data('{ sales(first: 100) { nodes { id } } }')).sales.nodes.map(
    (node: { id: string }) => node.id,
  );
  t.same(all, all.toSorted().reverse());
  const seen: string[] = [];
  for (let after: string | null = null; ; ) {
    const { sales } = await graph.data(page, { first: 1, after });
    t.equal(sales.totalCount, all.length);
    seen.push(...sales.nodes.map((node: { id: string }) => node.id));
    if (!sales.pageInfo.hasNextPage) break;
    after = sales.pageInfo.endCursor;
  }
  t.same(seen, all);
});

t.test('follows relations both ways, filters and orders', async (t) => {
  const { sales } = await graph.data(
    `query ($program: String!) {
      sales(condition: { program_id: $program, occurred_at_gte: "2020-01-01T00:00:00Z" }, orderBy: [OCCURRED_AT_ASC]) {
        nodes { id occurred_at customer { id sales { nodes { id } } } partner { handle } commissions { nodes { sale_id amount_minor } } }
      }
    }`,
    { program: program_id },
  );
  t.ok(sales.nodes.length >= 2);
  for (const sale of sales.nodes) {
    t.ok(sale.partner.handle);
    t.ok(sale.customer.sales.nodes.some(({ id }: { id: string }) => id === sale.id));
    for (const commission of sale.commissions.nodes) t.equal(commission.sale_id, sale.id);
  }
  const times = sales.nodes.map(({ occurred_at }: { occurred_at: string }) => occurred_at);
  t.same(times, times.toSorted());
  const { sales: none } = await graph.data(
    '{ sales(condition: { created_at_lt: "2020-01-01T00:00:00Z" }) { totalCount } }',
  );
  t.equal(none.totalCount, 0);
});

t.test('counts and adds up all rows that match, each currency by itself', async (t) => {
  const { sales } = await graph.data(
    '{ sales(first: 1) { totalCount aggregates { currency count amount_minor_sum refunded_minor_sum } } }',
  );
  const expected = await rail.query<{ currency: string; count: number }>(
    sql`
      select s.currency, count(*) as count, sum(s.amount_minor)::bigint as amount_minor_sum,
        sum(s.refunded_minor)::bigint as refunded_minor_sum
      from program.sale s
      where s.organization_id = ${caller.organization_id} and s.deleted_at is null
      group by s.currency`,
  );
  const byCurrency = (rows: { currency: string }[]) => rows.toSorted((a, b) => a.currency.localeCompare(b.currency));
  t.same(byCurrency(sales.aggregates), byCurrency(expected));
  t.equal(
    sales.totalCount,
    expected.reduce((sum, { count }) => sum + count, 0),
  );
  const { clicks } = await graph.data('{ clicks { aggregates { count } totalCount } }');
  t.equal(clicks.aggregates.count, clicks.totalCount);
});

t.test('needs a key with data:read, for introspection too', async (t) => {
  const introspection = { query: '{ __schema { types { name } } }' };
  const response = await fetch(`${rail.address}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(introspection),
  });
  t.equal(response.status, 401);
  t.equal(((await response.json()) as { error: { code: string } }).error.code, 'missing_api_key');
  const refused = await (await graphWith(rail, caller.organization_id, ['sales:read'])).send(introspection);
  t.equal(refused.status, 403);
  t.match(refused.body.error, { code: 'insufficient_scope', param: 'data:read' });
  const reader = await graphWith(rail, caller.organization_id, ['data:read']);
  t.equal((await reader.send(introspection)).status, 200);
});

t.test('answers with the headers of the API, and refuses what is no GraphQL request in its envelope', async (t) => {
  const answer = await graph.send({ query: '{ __typename }' });
  t.match(answer.headers, { 'rail-request-id': /^req_/, 'x-ratelimit-limit': /\d/, 'cache-control': 'no-store' });
  t.same(answer.body, { data: { __typename: 'Query' } });
  t.match((await graph.send({ query: 5 })).body.error, { code: 'invalid_parameter', param: 'query' });
  t.match((await graph.send({})).body.error, { code: 'missing_parameter', param: 'query' });
  t.match((await graph.send({ query: '{ x }', more: 1 })).body.error, { code: 'unknown_parameter', param: 'more' });
  t.equal((await caller.request('GET', '/graphql?query={__typename}')).status, 405);
});

t.test('shows personal columns to keys that may see them', async (t) => {
  const query = '{ customers(first: 100) { nodes { email name } } events(first: 100) { nodes { data } } }';
  const reader = await graphWith(rail, caller.organization_id, ['data:read', '*:read']);
  const without = await reader.data(query);
  t.ok(
    without.customers.nodes.every(
      ({ email, name }: { email: unknown; name: unknown }) => email === null && name === null,
    ),
  );
  t.notMatch(JSON.stringify(without), /@customer\.example\.com/);
  const personal = await graphWith(rail, caller.organization_id, ['data:read', 'data:personal']);
  t.match(JSON.stringify(await personal.data(query)), /@customer\.example\.com/);
});

t.test('answers batches in their order, each operation by itself', async (t) => {
  const { body } = await graph.send([
    { query: '{ __typename }' },
    { query: '{ nothing }' },
    { query: '{ programs { totalCount } }' },
  ]);
  t.match(body, [
    { data: { __typename: 'Query' } },
    { errors: [{ extensions: { code: 'query_invalid' } }] },
    { data: { programs: {} } },
  ]);
});

t.test('writes nothing', async (t) => {
  t.same(await graph.codes('mutation { deleteSale(id: "x") { id } }'), ['query_invalid']);
  t.same(await graph.codes('subscription { sales { id } }'), ['query_invalid']);
  const { __schema } = await graph.data('{ __schema { mutationType { name } subscriptionType { name } } }');
  t.same(__schema, { mutationType: null, subscriptionType: null });
});

t.test('says what is wrong with a value, without SQL and without a stack', async (t) => {
  const { body } = await graph.send({ query: '{ sales(after: "nonsense") { nodes { id } } }' });
  t.match(body.errors, [{ extensions: { code: 'query_invalid' }, path: ['sales'] }]);
  for (const no_time of [
    'soon',
    '1',
    '2026',
    '2026-11-21T09:30:00',
    '2026-13-01T00:00:00Z',
    '2026-02-30',
    '2026-06-31T00:00:00Z',
  ])
    t.same(
      await graph.codes(`{ sales(condition: { created_at_gte: "${no_time}" }) { nodes { id } } }`),
      ['query_invalid'],
      no_time,
    );
  for (const time of ['2026-11-21', '2026-11-21T09:30Z', '2026-11-21T09:30:00.123456+05:45'])
    t.same(await graph.codes(`{ sales(condition: { created_at_gte: "${time}" }) { nodes { id } } }`), [], time);
  const byDay = 'query ($day: Date) { sale_daily(condition: { day_gte: $day }) { nodes { sales } } }';
  for (const no_day of [
    '01.02.2026',
    'yesterday',
    'infinity',
    '2026-02',
    '2026-02-30',
    '+012026-01-01',
    '2026-02-01T10:00:00Z',
    20260201,
  ]) {
    const { body } = await graph.send({ query: byDay, variables: { day: no_day } });
    t.match(body.errors, [{ message: /YYYY-MM-DD/, extensions: { code: 'query_invalid' } }], `${no_day}`);
    const written = `{ sale_daily(condition: { day_gte: ${JSON.stringify(no_day)} }) { nodes { sales } } }`;
    t.same(await graph.codes(written), ['query_invalid'], `${no_day}`);
  }
  t.same(await graph.codes('{ sale_daily(condition: { day_gte: "2024-02-29" }) { nodes { sales } } }'), []);
  t.notMatch(JSON.stringify(body), /select|node_modules|at /);
});
