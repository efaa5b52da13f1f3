/** Tests queries that are refused before anything is read, however they are written, and those that are given up because they take too long. */
import { threadId } from 'node:worker_threads';
import { getIntrospectionQuery } from 'graphql';
import pg from 'pg';
import t from 'tap';
import { buildApi } from '../../../src/api.ts';
import { share_of_deadline, statement_ms } from '../../../src/data/graphql/limits.ts';
import { GraphqlThread } from '../../../src/data/graphql/thread.ts';
import { callerOf, closeApi, eventually, log, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { graphOf } from './client.ts';

const rail = await startRail({ worker: false });
const caller = await rail.organization();
const graph = graphOf(caller);

const times = (count: number, text: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => text(index)).join(' ');

t.test('refuses a page over 100 rows, whichever way it is asked for', async (t) => {
  const refused = ['page_too_large'];
  t.same(await graph.codes('{ sales(first: 101) { nodes { id } } }'), refused);
  t.same(await graph.codes('{ sales(last: 1000000) { nodes { id } } }'), refused);
  t.same(await graph.codes('query ($n: Int) { sales(first: $n) { nodes { id } } }', { n: 101 }), refused);
  t.same(
    await graph.codes('query ($n: Int) { sales(first: $n) { nodes { id } } }', { n: null }),
    refused,
    'null is no limit',
  );
  t.same(
    await graph.codes('query ($n: Int) { sales(first: $n) { nodes { id } } }'),
    refused,
    'nor is a missing variable',
  );
  t.same(await graph.codes('query ($n: Int = 500) { sales(first: $n) { nodes { id } } }'), refused);
  t.same(await graph.codes('{ partners { nodes { sales(first: 200) { nodes { id } } } } }'), refused);
  t.same(await graph.codes('{ sales(first: 2, last: 2) { nodes { id } } }'), ['query_invalid']);
  t.same(await graph.codes('{ sales(first: 100) { nodes { id } } }'), []);
});

t.test('takes one of first and last where the variable of the other is null or missing', async (t) => {
  const both = 'query ($first: Int, $last: Int) { tags(first: $first, last: $last) { nodes { name } } }';
  const { merchant, program_id } = await openShop(rail);
  for (const name of ['a', 'b', 'c']) await merchant.post('/v1/tags', { program_id, name });
  const { data, codes } = graphOf(merchant);
  const tags = (...names: string[]) => ({ tags: { nodes: names.map((name) => ({ name })) } });
  for (const other of [{}, { last: null }]) t.same(await data(both, { first: 2, ...other }), tags('c', 'b'));
  for (const other of [{}, { first: null }]) t.same(await data(both, { last: 2, ...other }), tags('b', 'a'));
  t.same(await codes(both, { first: 2, last: 2 }), ['query_invalid']);
  t.same(await codes(both, { first: 101, last: null }), ['page_too_large']);
  t.same(await codes(both, { first: null }), ['page_too_large'], 'neither is no limit');
  t.same(await codes(both, { first: 2, last: '2' }), ['query_invalid']);
  const twice = await graph.send({ query: '{ tags(first: 1, first: 2) { nodes { name } } }' });
  t.match(twice.body.errors, [{ message: "'tags' has 'first' twice. Use it once." }]);
});

t.test('refuses depth over 10, through fragments too', async (t) => {
  const one = 'sales(first: 1)';
  const deep = `{ ${one} { nodes { customer { ${one} { nodes { customer { ${one} { nodes { customer { partner { id } } } } } } } } } } }`;
  t.same(await graph.codes(deep), ['query_too_deep']);
  t.match((await graph.send({ query: deep })).body.errors[0], {
    message: /^The field 'id' is nested 11 levels deep; 10 is the most\. A list and its 'nodes' are two levels\./,
    extensions: { depth: 11, limit: 10 },
  });
  const fragments = `{ ${one} { nodes { ...a } } } fragment a on Sale { customer { ...b } }
    fragment b on Customer { ${one} { nodes { customer { ...c } } } }
    fragment c on Customer { ${one} { nodes { customer { partner { program { id } } } } } }`;
  t.same(await graph.codes(fragments), ['query_too_deep']);
  t.same(await graph.codes(`{ ${one} { nodes { customer { partner { program { id } } } } } }`), []);
});

t.test('counts pages within pages, aliases, fragments, totalCount and aggregates before it reads', async (t) => {
  const refused = ['query_too_costly'];
  const lists = '{ partners(first: 100) { nodes { sales(first: 100) { nodes { id status } } } } }';
  t.same(await graph.codes(lists), refused);
  t.same(await graph.codes(`{ ${times(60, (n) => `a${n}: sales { totalCount }`)} }`), refused, 'aliases');
  t.same(await graph.codes(`{ ${times(60, (n) => `a${n}: sales { aggregates { count } }`)} }`), refused, 'aggregates');
  t.same(
    await graph.codes('{ partners(first: 100) { nodes { sales { totalCount } } } }'),
    refused,
    'a count for each row',
  );
  const spread = `{ ${times(60, (n) => `a${n}: sales(first: 100) { ...rows }`)} } fragment rows on SaleConnection { nodes { id status currency } }`;
  t.same(await graph.codes(spread), refused, 'fragments');
  const { body } = await graph.send({ query: lists });
  t.match(body.errors[0], { message: /first.*totalCount/, extensions: { limit: 50_000 } });
});

t.test('says what a request costs', async (t) => {
  const { headers } = await graph.send({ query: '{ sales(first: 10) { nodes { id status customer { id } } } }' });
  // A list 1,000 and its connection 10, ten sales at 10, their two fields; an object 450, ten customers at 10 and their id.
  t.equal(headers['rail-query-cost'], String(1_000 + 10 + 450 + 10 * (10 + 2 + 10 + 1)));
});

t.test('adds up the costs of a batch', async (t) => {
  const query = '{ partners(first: 40) { nodes { sales(first: 20) { nodes { id status } } } } }';
  t.match((await graph.send([{ query }])).body, [{ data: {} }]);
  const { body } = await graph.send(Array.from({ length: 10 }, () => ({ query })));
  t.equal(body.length, 10);
  for (const { errors } of body as unknown as { errors: unknown }[])
    t.match(errors, [{ extensions: { code: 'query_too_costly' } }]);
});

t.test('refuses batches over 10, and empty ones', async (t) => {
  const batch = (count: number) => graph.send(Array.from({ length: count }, () => ({ query: '{ __typename }' })));
  t.equal((await batch(10)).status, 200);
  t.match(await batch(11), { status: 400, body: { error: { code: 'invalid_parameter', message: /10 operations/ } } });
  t.equal((await batch(0)).status, 400);
});

t.test('refuses fragments that contain themselves, and those that multiply', async (t) => {
  const cycle = '{ sales { nodes { ...a } } } fragment a on Sale { id ...b } fragment b on Sale { id ...a }';
  t.same(await graph.codes(cycle), ['query_invalid']);
  const doubling = `{ sales { nodes { ...f0 } } } ${times(40, (n) => `fragment f${n} on Sale { ...f${n + 1} ...f${n + 1} }`)} fragment f40 on Sale { id }`;
  t.same(await graph.codes(doubling), ['query_too_large'], 'a trillion fields');
});

t.test('refuses floods of aliases, of directives and of text', async (t) => {
  t.same(await graph.codes(`{ sales { nodes { ${times(1_500, (n) => `a${n}: id`)} } } }`), ['query_too_large']);
  t.same(await graph.codes(`{ sales { nodes { id ${times(1_500, () => '@skip(if: false)')} } } }`), [
    'query_too_large',
  ]);
  t.same(await graph.codes(`{ ${times(200_000, () => 'a')} }`), ['query_too_large'], 'tokens');
  t.same(
    await graph.codes(`{ sales { nodes { ${times(900, () => 'id')} } } }`),
    ['query_too_large'],
    'a field again and again',
  );
  t.same(await graph.codes(`{ sales { nodes { ${times(20, () => 'id')} } } }`), []);
  t.equal((await graph.send({ query: `{ sales { nodes { id } } } # ${'x'.repeat(1_100_000)}` })).status, 413);
});

t.test('bounds introspection, and lets tools have theirs', async (t) => {
  t.ok((await graph.data(getIntrospectionQuery())).__schema);
  const deep = '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }';
  t.not((await graph.codes(deep)).length, 0);
  const many = `{ ${times(30, (n) => `a${n}: __schema { types { fields { name args { name type { name } } type { name } } } }`)} }`;
  t.same(await graph.codes(many), ['query_too_costly']);
});

t.test('answers another organization while one asks for the schema again and again', async (t) => {
  const other = graphOf(await rail.organization());
  const sales = '{ sales(first: 1) { nodes { id } } }';
  t.same(await other.codes(sales), []);
  const introspection = getIntrospectionQuery();
  for (const is_repeated of [true, false]) {
    let answered = 0;
    const flood = Array.from({ length: 60 }, async (_, n) => {
      const { status } = await graph.send({ query: is_repeated ? introspection : `${introspection} # ${n}` });
      t.equal(status, 200);
      answered++;
    });
    t.same(await other.codes(sales), []);
    if (!is_repeated) t.ok(answered < flood.length / 2, `it waits for few of them: ${answered}`);
    await Promise.all(flood);
  }
});

t.test('keeps answers about the schema by their question, and never rows', async (t) => {
  const shop = await openShop(rail);
  const other = graphOf(shop.merchant);
  const typeOf = 'query ($name: String!) { __type(name: $name) { name } }';
  for (const name of ['Sale', 'Click', 'Sale'])
    for (const each of [graph, other]) t.same(await each.data(typeOf, { name }), { __type: { name } });
  const both =
    'query a { __type(name: "Sale") { name } programs { nodes { id } } } query b { __type(name: "Click") { name } }';
  const ask = async (each: typeof graph, operationName: string) =>
    (await each.send({ query: both, operationName })).body.data;
  t.same(await ask(graph, 'a'), { __type: { name: 'Sale' }, programs: { nodes: [] } });
  t.same(await ask(other, 'a'), { __type: { name: 'Sale' }, programs: { nodes: [{ id: shop.program_id }] } });
  t.same(await ask(other, 'b'), { __type: { name: 'Click' } });
  t.match((await graph.send([{ query: '{ __typename }' }, { query: typeOf, variables: { name: 'Sale' } }])).body, [
    { data: { __typename: 'Query' } },
    { data: { __type: { name: 'Sale' } } },
  ]);
});

t.test('refuses more lists than can be planned in a moment, whatever they read', async (t) => {
  const lists = (count: number) => `{ ${times(count, (n) => `a${n}: sales(first: 1) { nodes { id } }`)} }`;
  t.same(await graph.codes(lists(50)), ['query_too_costly']);
  t.same(await graph.codes(lists(40)), []);
  const { body } = await graph.send(Array.from({ length: 10 }, () => ({ query: lists(6) })));
  t.match(body, [{ errors: [{ extensions: { code: 'query_too_costly' } }] }], 'of a batch together');
});

t.test('plans and answers in a thread of its own, with connections of the process', async (t) => {
  const { database } = rail.store;
  const thread = new GraphqlThread(database);
  const most = database.options.max;
  const question = {
    is_batch: false,
    organization_id: caller.organization_id,
    sees_personal: false,
    answer_ms: 120_000,
  };
  const { body } = await thread.answer({ ...question, asked: [{ query: '{ programs { totalCount } }' }] });
  t.match(JSON.parse(Buffer.from(body).toString()), { data: { programs: { totalCount: Number } } });
  t.not(thread.id, undefined);
  t.not(thread.id, threadId);
  t.ok(database.options.max < most);
  await thread.close();
  t.equal(thread.id, undefined);
  t.equal(database.options.max, most);
});

t.test('says that time ran out where the thread is busy, and not that the database is away', async (t) => {
  const thread = new GraphqlThread(rail.store.database);
  t.teardown(() => thread.close());
  const question = { organization_id: caller.organization_id, sees_personal: false };
  const asked = [{ query: getIntrospectionQuery() }];
  // Whatever becomes of these: a thread that answers nothing for so long is ended.
  const busy = Promise.allSettled(
    Array.from({ length: 5 }, () => thread.answer({ ...question, is_batch: false, answer_ms: 5_000, asked })),
  );
  await t.rejects(thread.answer({ ...question, is_batch: false, answer_ms: 1, asked }), { code: 'deadline_exceeded' });
  await busy;
});

t.test('tells no more than a few errors of a query', async (t) => {
  t.ok((await graph.codes(`{ ${times(500, (n) => `nothing${n}`)} }`)).length <= 5);
});

t.test('ends a statement with the deadline of its request, in Postgres too', async (t) => {
  const answer_ms = 3_500;
  const api = await buildApi({ store: rail.store, services: rail.services, log, limits: { answer_ms } });
  t.teardown(() => closeApi(api));
  const impatient = graphOf(
    callerOf(await api.listen({ port: 0, host: '127.0.0.1' }), caller.key, caller.organization_id),
  );
  const shop = await openShop(rail, {}, caller);
  await shop.coupon();
  const coupons = '{ coupons { nodes { id } } }';
  // The first time it takes as long as the query takes to be planned.
  const isAnswered = async () => (await impatient.codes(coupons)).length === 0;
  await eventually(isAnswered, 'the coupons');
  const blocker = new pg.Client({ connectionString: rail.url });
  await blocker.connect();
  t.teardown(() => blocker.end());
  await blocker.query('select pg_advisory_lock(78, 0)');
  // Each row says by a lock how long its statement may take, which its connection keeps, and waits.
  await blocker.query(`
    create function public.wait_for_blocker() returns boolean language plpgsql security definer as $$
    begin
      perform pg_advisory_lock(77, (select setting::integer from pg_settings where name = 'statement_timeout'));
      perform pg_advisory_xact_lock(78, 0);
      return true;
    end $$;
    create policy wait_for_blocker on program.coupon as restrictive using (public.wait_for_blocker())`);
  t.same(await impatient.codes(coupons), ['deadline_exceeded']);
  const { rows } = await blocker.query<{ ms: number }>(`
    select l.objid::integer as ms from pg_locks l join pg_database d on d.oid = l.database
    where l.locktype = 'advisory' and l.classid = 77 and d.datname = current_database()`);
  const [{ ms } = { ms: 0 }] = rows;
  t.ok(ms > 0 && ms <= answer_ms * share_of_deadline && ms < statement_ms, `${ms} ms are left to the statement`);
  await eventually(async () => (await rail.waiting()) === 0, 'nothing to wait in Postgres any more');
  await blocker.query('select pg_advisory_unlock(78, 0); drop policy wait_for_blocker on program.coupon');
  await eventually(isAnswered, 'the coupons again');
});
