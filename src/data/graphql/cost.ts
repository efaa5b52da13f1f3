/** Estimates the cost of an operation from its text and its variables alone: by the rows that it can get, not those that there are. */
import {
  type ArgumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
  type ValueNode,
} from 'graphql';
import { costs, introspected_lists, most_cost, most_depth, most_fields } from './limits.ts';
import { QueryProblem } from './problem.ts';
import { default_rows, most_rows } from './schema/pages.ts';

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

type Field = GraphQLField<unknown, unknown>;

interface Place {
  type: GraphQLCompositeType;
  depth: number;
  /** The largest number of times that this place is read. */
  times: number;
  /** Within a connection: the rows of its page. */
  rows: number;
}

/**
 * Counts an operation, with all fragments written out and every alias by itself. It stops with the first limit that is passed, so that no
 * text takes long to count. What does not fit the schema counts as a value: validation refuses it afterwards.
 * @returns its cost  @throws QueryProblem
 */
export function costOf(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  fragments: Fragments,
  variables: Record<string, unknown>,
): number {
  const root = schema.getRootType(operation.operation);
  if (!root)
    throw new QueryProblem('query_invalid', 'This API is read-only: send queries, no mutations or subscriptions.');
  const count = new Count(schema, operation, fragments, variables);
  count.selection(operation.selectionSet, { type: root, depth: 1, times: 1, rows: 1 });
  return Math.ceil(count.cost);
}

class Count {
  cost = 0;
  #fields = 0;
  readonly #open = new Set<string>();
  readonly #schema: GraphQLSchema;
  readonly #operation: OperationDefinitionNode;
  readonly #fragments: Fragments;
  readonly #variables: Record<string, unknown>;

  constructor(
    schema: GraphQLSchema,
    operation: OperationDefinitionNode,
    fragments: Fragments,
    variables: Record<string, unknown>,
  ) {
    this.#schema = schema;
    this.#operation = operation;
    this.#fragments = fragments;
    this.#variables = variables;
  }

  selection({ selections }: SelectionSetNode, place: Place): void {
    for (const selection of selections) {
      this.#fields += 1 + (selection.directives?.length ?? 0);
      if (this.#fields > most_fields) throw tooManyFields();
      if (selection.kind === Kind.FIELD) this.#field(selection, place);
      else if (selection.kind === Kind.INLINE_FRAGMENT) this.selection(selection.selectionSet, place);
      else this.#fragment(selection.name.value, place);
    }
  }

  #fragment(name: string, place: Place): void {
    const fragment = this.#fragments.get(name);
    if (!fragment) return;
    if (this.#open.has(name)) throw new QueryProblem('query_invalid', `The fragment '${name}' contains itself.`);
    this.#open.add(name);
    this.selection(fragment.selectionSet, place);
    this.#open.delete(name);
  }

  #field(node: FieldNode, place: Place): void {
    const { type, depth } = place;
    const field = this.#definitionOf(type, node.name.value);
    const named = field && getNamedType(field.type);
    const is_introspection = type.name.startsWith('__') || named?.name.startsWith('__') === true;
    if (!is_introspection && depth > most_depth) throw tooDeep(node.name.value, depth);
    if (!named || isLeafType(named) || !node.selectionSet) this.#value(node.name.value, is_introspection, place.times);
    else if (is_introspection) this.#introspected(node, named as GraphQLCompositeType, place);
    else this.#object(node, field, named as GraphQLCompositeType, place);
  }

  #value(name: string, is_introspection: boolean, times: number): void {
    const price = name === 'totalCount' ? costs.count : is_introspection ? costs.introspected : costs.value;
    this.#add(times * price);
  }

  #introspected({ name, selectionSet }: FieldNode, type: GraphQLCompositeType, { depth, times }: Place): void {
    this.#add(times * costs.introspected);
    const entries = introspected_lists[name.value] ?? 1;
    this.selection(selectionSet as SelectionSetNode, { type, depth: depth + 1, times: times * entries, rows: 1 });
  }

  /** An object, a list of them, or one of the layers between a list and its rows: the connection, its edges. */
  #object(node: FieldNode, field: Field, type: GraphQLCompositeType, { depth, times, rows }: Place): void {
    const is_counted = type.name.endsWith('Aggregates');
    const are_rows = type.name.endsWith('Edge') || node.name.value === 'nodes';
    const is_layer = are_rows || ['node', 'pageInfo'].includes(node.name.value);
    const inner = are_rows ? times * rows : times;
    this.#add(inner * costs.object + (is_counted ? times * costs.count : 0));
    const is_list = field.args.some(({ name }) => name === 'first');
    const page = is_list ? this.#pageOf(node) : 1;
    this.#add(is_list ? costs.planned_list : is_layer ? 0 : costs.planned_object);
    this.selection(node.selectionSet as SelectionSetNode, { type, depth: depth + 1, times: inner, rows: page });
  }

  #definitionOf(type: GraphQLCompositeType, name: string): Field | undefined {
    if (type === this.#schema.getQueryType()) {
      if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
      if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
    }
    return isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
  }

  /** Returns the largest number of rows of a page. */
  #pageOf({ name, arguments: given = [] }: FieldNode): number {
    const written = given.filter((argument) => ['first', 'last'].includes(argument.name.value));
    if (written.length === 0) return default_rows;
    // Clients that page in both directions have a variable for each, one of which is null.
    const asked = written.filter((argument) => (this.#integer(argument.value) ?? null) !== null);
    if (asked.length > 1) {
      const [one, other] = asked.map((argument) => argument.name.value);
      const what = one === other ? `'${one}' twice. Use it once` : "both 'first' and 'last'. Use one";
      throw new QueryProblem('query_invalid', `'${name.value}' has ${what}.`);
    }
    const [argument] = [...asked, ...written] as [ArgumentNode];
    const size = this.#integer(argument.value);
    if (typeof size === 'number' && size >= 1 && size <= most_rows) return size;
    throw new QueryProblem(
      'page_too_large',
      `'${argument.name.value}' of '${name.value}' must be an integer from 1 to ${most_rows}. Ask for the next page with 'after'.`,
      { limit: most_rows },
    );
  }

  #integer(value: ValueNode): unknown {
    if (value.kind === Kind.INT) return Number(value.value);
    if (value.kind !== Kind.VARIABLE) return undefined;
    const name = value.name.value;
    if (Object.hasOwn(this.#variables, name)) return this.#variables[name];
    const fallback = this.#operation.variableDefinitions?.find(
      ({ variable }) => variable.name.value === name,
    )?.defaultValue;
    return fallback?.kind === Kind.INT ? Number(fallback.value) : undefined;
  }

  #add(cost: number): void {
    this.cost += cost;
    if (this.cost > most_cost) throw tooCostly();
  }
}

const tooManyFields = (): QueryProblem =>
  new QueryProblem(
    'query_too_large',
    `The query has more than ${most_fields} fields once its fragments are written out. Send it in parts.`,
    { limit: most_fields },
  );

const tooDeep = (field: string, depth: number): QueryProblem =>
  new QueryProblem(
    'query_too_deep',
    `The field '${field}' is nested ${depth} levels deep; ${most_depth} is the most. A list and its 'nodes' are two levels. Read inner objects by their ids in a second request.`,
    { depth, limit: most_depth },
  );

/** @param cost what was counted, where the count did not stop at the limit */
export const tooCostly = (cost?: number): QueryProblem =>
  new QueryProblem(
    'query_too_costly',
    `The request costs ${cost === undefined ? `more than ${most_cost}, the maximum` : `${cost}; ${most_cost} is the maximum`}. Ask for smaller pages ('first'), fewer fields or lists within lists, or leave out 'totalCount' and 'aggregates'.`,
    { ...(cost === undefined ? {} : { cost }), limit: most_cost },
  );
