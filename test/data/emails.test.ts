/** Who sees no personal data sees no email, whatever text it was written into: by exports, by GraphQL and in SQL. */
import {
  buildClientSchema,
  type GraphQLObjectType,
  getIntrospectionQuery,
  getNamedType,
  type IntrospectionQuery,
  isLeafType,
} from 'graphql';
import pg from 'pg';
import t from 'tap';
import { z } from 'zod';
import { operations } from '../../src/operations.ts';
import { feed } from '../../src/program/exported.ts';
import { type Json, startRail, startReceiver } from '../harness.ts';
import { graphWith } from './graphql/client.ts';
import { connectAs, fillOrganization, newLogin, viewsOf } from './tenant.ts';

// Values that no rule of Postgres forbids are written past the triggers.
const rail = await startRail({ audit: false });
const receiver = await startReceiver();
const { caller } = await fillOrganization(rail, receiver.url);
const { organization_id } = caller;

const email = 'ada@leak.example';
/** Ids that merchants set are shown as they are, as /docs/data says, and so is what is read by such an id. */
const own_ids = /^(external_\w+|product_ids?|reference|statement_number)$/;

/** Each text, list of texts and object, in a text that begins as it did before, where it is to be unique. */
t.before(async () => {
  const writer = new pg.Client({ connectionString: rail.url });
  await writer.connect();
  await writer.query('set session_replication_role = replica');
  const { rows } = await writer.query<{ name: string; column: string; type: string }>(`
    select c.table_id::regclass::text as name, quote_ident(c.column_name) as column, format_type(a.atttypid, null) as type
    from data.columns_read() c
    join pg_attribute a on a.attrelid = c.table_id and a.attname = c.column_name
    where a.atttypid in ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype) and c.column_name !~ '(^|_)ids?$|body$'`);
  const written: string[] = [];
  for (const { name, column, type } of rows) {
    const value =
      { text: `'${email} ' || ctid`, 'text[]': `array['${email} ' || ctid]` }[type] ?? `'{"a ${email}": "${email}"}'`;
    const organization = name === 'core.organization' ? 'id' : 'organization_id';
    const statement = `update ${name} set ${column} = ${value} where ${organization} = '${organization_id}'`;
    // A list of values, or a pattern, forbids it.
    await writer.query(statement).then(
      () => written.push(`${name}.${column}`),
      () => {},
    );
  }
  await writer.end();
  for (const one of [
    'program.partner_group.name',
    'program.tag.name',
    'program.rule.name',
    'program.partner_group.landing_url',
  ])
    t.ok(written.includes(one), `${one} was written`);
  t.ok(written.length > 60);
});

/** Columns whose values the API takes from a list, checks against a pattern without `@`, or makes itself. */
const checked =
  /^(languages|(blocked_)?countries|country|(country|language)_code|timezone|default_timezone|currency|type|event_types?|kind|method|payout_methods|rail|rate_type|rate_override|tiers|clawback_of|replay_of|resolved_by|slug|subdomain|custom_domain|short_(url|slug|domain)|operation|fields|allowed_origins)$/;

/** The fields of the bodies of requests, by their names, also within objects. */
const fieldsOf = (schema: unknown): [string, z.ZodType][] => {
  if (!(schema instanceof z.ZodType)) return [];
  const def = schema.def as { innerType?: unknown; element?: unknown; options?: unknown[]; in?: unknown };
  const inner = [def.innerType, def.element, def.in, ...(def.options ?? [])].flatMap(fieldsOf);
  const shape = schema instanceof z.ZodObject ? (Object.entries(schema.shape) as [string, z.ZodType][]) : [];
  return [...inner, ...shape, ...shape.flatMap(([, field]) => fieldsOf(field))];
};

t.test('no request takes an email where none is looked for', (t) => {
  const taken = operations
    .flatMap(({ name, body }) => fieldsOf(body).map(([field, schema]) => ({ name, field, schema })))
    .filter(
      ({ field, schema }) => checked.test(field) && [email, [email]].some((given) => schema.safeParse(given).success),
    );
  t.same(
    taken.map(({ name, field }) => `${field} of ${name}`),
    [],
  );
  t.end();
});

t.test('in no name that is made of another', async (t) => {
  const name = `${email} and friends`;
  const program = await caller.post('/v1/programs', { name, website_url: 'https://a.example.com', currency: 'USD' });
  t.equal(program.subdomain, 'and-friends');
  const group = await caller.post('/v1/groups', { program_id: program.id, name });
  t.equal(group.slug, 'and-friends');
  t.equal((await caller.post('/v1/groups', { program_id: program.id, name: email })).slug, 'group');
});

/** The fields of a row in which an email is shown. */
const leaks = (row: Json): string[] =>
  Object.entries(row).flatMap(([field, value]) =>
    JSON.stringify(value ?? null).includes('leak.example') && !own_ids.test(field) && !checked.test(field)
      ? [field]
      : [],
  );

t.test('in no view', async (t) => {
  const psql = await connectAs(await newLogin(rail, caller));
  const seeing = await connectAs(await newLogin(rail, { ...caller, personal_data: true }));
  let seen = 0;
  for (const view of await viewsOf(rail)) {
    t.same((await psql.query(`select * from ${view}`)).flatMap(leaks), [], view);
    seen += (await seeing.query(`select * from ${view}`)).flatMap(leaks).length;
  }
  t.ok(seen > 60, 'there are some');
});

t.test('in no export', async (t) => {
  const key = await rail.key(organization_id, { scopes: ['data:read'] });
  for (const { plural } of feed.resources.filter((resource) => !feed.personal.includes(resource))) {
    const { status, text } = await key.request('GET', `/v1/exports/${plural}`);
    t.equal(status, 200, plural);
    const lines = text
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line) as Json);
    t.same(lines.flatMap(leaks), [], plural);
  }
});

t.test('in no list of GraphQL', async (t) => {
  const graph = await graphWith(rail, organization_id, ['data:read']);
  const schema = buildClientSchema((await graph.data(getIntrospectionQuery())) as unknown as IntrospectionQuery);
  const lists = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(({ args }) =>
    args.some(({ name }) => name === 'first'),
  );
  for (const list of lists) {
    const type = schema.getType(getNamedType(list.type).name.replace(/Connection$/, '')) as GraphQLObjectType;
    const leaves = Object.values(type.getFields()).filter((field) => isLeafType(getNamedType(field.type)));
    const { nodes } = (
      await graph.data(`{ list: ${list.name} { nodes { ${leaves.map(({ name }) => name).join(' ')} } } }`)
    ).list;
    t.same(nodes.flatMap(leaks), [], list.name);
  }
  t.ok(lists.length > 40);
});
