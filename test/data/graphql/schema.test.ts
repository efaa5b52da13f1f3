/**
 * The schema is a contract, as the views are: fields may be added, and none may go. `schema.graphql` is the record; it is written by
 * `npx rail data graphql-schema > test/data/graphql/schema.graphql`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  buildSchema,
  type ExecutionResult,
  findBreakingChanges,
  type GraphQLObjectType,
  isObjectType,
  parse,
} from 'graphql';
import pg from 'pg';
import t from 'tap';
import { formatted } from '../../../src/data/graphql/formatted.ts';
import { statement_ms } from '../../../src/data/graphql/limits.ts';
import { loadEndpoint } from '../../../src/data/graphql/load.ts';
import { tags } from '../../../src/data/graphql/schema/tags.ts';
import { eventually, sql, startRail } from '../../harness.ts';
import { viewsOf } from '../tenant.ts';

const rail = await startRail({ worker: false });
const recorded = await readFile(join(import.meta.dirname, 'schema.graphql'), 'utf8');
const { GraphqlEndpoint } = await loadEndpoint();
const { execute } = await import('postgraphile/grafast');
const endpoint = await GraphqlEndpoint.open(rail.store.database);

t.test('keeps each type, field and argument as it is recorded, and records each that is added', async (t) => {
  t.same(findBreakingChanges(buildSchema(recorded), endpoint.schema), []);
  t.same(`${endpoint.sdl()}\n`, recorded);
});

t.test('reads the catalogue for longer than a statement of a request may take', async (t) => {
  const blocker = new pg.Client({ connectionString: rail.url });
  await blocker.connect();
  t.teardown(() => blocker.end());
  await blocker.query('begin; alter view data.coupon set (security_barrier = true)');
  const opening = GraphqlEndpoint.open(rail.store.database);
  const isLate = async () => {
    const [late] = await rail.query(sql`
      select from pg_stat_activity
      where wait_event_type = 'Lock' and clock_timestamp() - query_start > ${statement_ms} * interval '1.1 milliseconds'`);
    return late !== undefined;
  };
  await Promise.race([opening, eventually(isLate, 'a statement that waits for longer')]);
  await blocker.query('rollback');
  t.ok((await opening).schema);
});

t.test('says that time ran out where a query takes too long to be planned', async (t) => {
  const impatient = { grafast: { timeouts: { planning: 0.001 } } };
  const document = parse('{ sales { nodes { id } } }');
  const asked = { schema: endpoint.schema, document, contextValue: {}, resolvedPreset: impatient };
  const { errors = [] } = (await execute(asked as never)) as ExecutionResult;
  t.match(
    errors.map((error) => formatted(error, () => {})),
    [{ extensions: { code: 'deadline_exceeded' } }],
  );
});

t.test('has every view, and each column under its name', async (t) => {
  const views = (await viewsOf(rail)).map((name) => name.replaceAll('"', '').replace('data.', ''));
  t.same(Object.keys(tags).toSorted(), views.toSorted());
  const contract = JSON.parse(await readFile(join(import.meta.dirname, '..', 'contract.json'), 'utf8'));
  const types = Object.values(endpoint.schema.getTypeMap()).filter(isObjectType) as GraphQLObjectType[];
  const missing = Object.entries<[string, string][]>(contract).flatMap(([view, columns]) => {
    const name = view.replaceAll(/(^|_)(\w)/g, (_, _start, letter: string) => letter.toUpperCase());
    const fields = types.find((type) => type.name === name)?.getFields() ?? {};
    return columns.filter(([column]) => !fields[column]).map(([column]) => `${name}.${column}`);
  });
  t.same(missing, []);
});

t.test('names fields in snake_case, and a single record in the singular', async (t) => {
  const types = Object.values(endpoint.schema.getTypeMap()).filter(isObjectType);
  const records = types.filter(({ name }) => !/^(__|PageInfo$)|(Connection|Edge)$/.test(name));
  const names = records.flatMap((type) => Object.keys(type.getFields()).map((field) => `${type.name}.${field}`));
  t.ok(names.length > 500);
  t.same(
    names.filter((name) => !/^\w+\.[a-z][a-z0-9_]*$/.test(name)),
    [],
  );
  const fieldsOf = (name: string) => types.find((type) => type.name === name)?.getFields();
  t.equal(`${fieldsOf('Partner')?.payout_method?.type}`, 'PayoutMethod');
  t.equal(`${fieldsOf('Payout')?.statement?.type}`, 'PayoutStatement');
});

t.test('describes every list and every column', async (t) => {
  const types = Object.values(endpoint.schema.getTypeMap()).filter(isObjectType);
  const fields = types
    .filter(({ name }) => !name.startsWith('__'))
    .flatMap((type) => Object.values(type.getFields()).map((field) => ({ at: `${type.name}.${field.name}`, field })));
  t.ok(fields.length > 500);
  t.same(
    fields.filter(({ field }) => !field.description).map(({ at }) => at),
    [],
  );
});
