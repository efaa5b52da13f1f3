/** One organization sees nothing of another one: every type, each by its list and by its key. */
import {
  buildClientSchema,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  type IntrospectionQuery,
  isLeafType,
} from 'graphql';
import t from 'tap';
import { startRail, startReceiver } from '../../harness.ts';
import { fillOrganization, rowsOfBoth } from '../tenant.ts';
import { graphOf } from './client.ts';

const rail = await startRail();
const receiver = await startReceiver();
const own = await fillOrganization(rail, receiver.url);
const other = await fillOrganization(rail, receiver.url);
const graph = graphOf(own.caller);
const graph_of_other = graphOf(other.caller);
const schema = buildClientSchema((await graph.data(getIntrospectionQuery())) as unknown as IntrospectionQuery);

const fields = Object.values(schema.getQueryType()?.getFields() ?? {});
const isList = ({ args }: GraphQLField<unknown, unknown>) => args.some(({ name }) => name === 'first');
const leavesOf = (type: GraphQLObjectType): string[] =>
  Object.values(type.getFields())
    .filter((field) => isLeafType(getNamedType(field.type)))
    .map(({ name }) => name);
const typeOf = (list: GraphQLField<unknown, unknown>, from: GraphQLSchema): GraphQLObjectType =>
  from.getType(getNamedType(list.type).name.replace(/Connection$/, '')) as GraphQLObjectType;

t.test('shows no row of another organization in any list', async (t) => {
  for (const list of fields.filter(isList)) {
    const query = `{ list: ${list.name}(first: 100) { nodes { ${leavesOf(typeOf(list, schema)).join(' ')} } totalCount } }`;
    const read = async (each: typeof graph): Promise<object[]> => (await each.data(query)).list.nodes;
    const [rows, theirs] = await rowsOfBoth([graph, graph_of_other], read, list.name);
    t.notOk(
      rows.some((row) => theirs.includes(row)),
      list.name,
    );
    t.notOk(
      rows.some((row) => row.includes(other.program_id)),
      `${list.name} names no program of another organization`,
    );
  }
});

t.test('finds no row of another organization by its key', async (t) => {
  for (const single of fields.filter((field) => !isList(field))) {
    const keys = single.args.map(({ name }) => name);
    const list = fields.find((field) => isList(field) && typeOf(field, schema) === getNamedType(single.type));
    const rows = (await graph_of_other.data(`{ list: ${list?.name} { nodes { ${keys.join(' ')} } } }`)).list.nodes;
    const [row] = rows;
    t.ok(row, single.name);
    const call = `${single.name}(${keys.map((key) => `${key}: ${JSON.stringify(row[key])}`).join(', ')}) { ${keys.join(' ')} }`;
    t.same(await graph_of_other.data(`{ ${call} }`), { [single.name]: row }, `${single.name} of its own organization`);
    t.same(await graph.data(`{ ${call} }`), { [single.name]: null }, `${single.name} of another one`);
  }
});

t.test('reads nothing by conditions on another organization', async (t) => {
  const { sales } = await graph.data(
    `query ($program: String!) { sales(condition: { program_id: $program }) { nodes { id } totalCount aggregates { count } } }`,
    { program: other.program_id },
  );
  t.same(sales, { nodes: [], totalCount: 0, aggregates: [] });
});
