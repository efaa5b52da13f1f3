/** A query's text becomes a document that may be executed: parsed, counted, held against the schema. */
import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  TypeInfo,
  validate,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { costOf, type Fragments } from './cost.ts';
import { type Introspection, introspectionOf } from './introspection.ts';
import { most_tokens } from './limits.ts';
import { QueryProblem } from './problem.ts';
import { default_rows } from './schema/pages.ts';

/** The number and the length of the documents that are cached: a client sends the same ones again and again. */
const most_kept = 200;
const longest_kept = 10_000;
/** The number of errors that a query returns. */
const most_errors = 5;

export interface Asked {
  query: string;
  operationName?: string | null | undefined;
  variables?: Record<string, unknown> | null | undefined;
}

export interface Opened {
  document: DocumentNode;
  cost: number;
  introspection: Introspection;
}

export class Documents {
  readonly #schema: GraphQLSchema;
  readonly #valid = new Map<string, DocumentNode>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** @throws QueryProblem, or GraphQLErrors as an AggregateError */
  open({ query, operationName, variables }: Asked): Opened {
    const known = this.#valid.get(query);
    const document = known ?? parsed(query);
    const [operation, fragments] = [operationOf(document, operationName), fragmentsOf(document)];
    const cost = costOf(this.#schema, operation, fragments, variables ?? {});
    const introspection = introspectionOf(operation, fragments);
    return { document: known ?? this.#keep(query, this.#validated(document)), cost, introspection };
  }

  #validated(document: DocumentNode): DocumentNode {
    const errors = validate(this.#schema, document, specifiedRules, { maxErrors: most_errors });
    if (errors.some(({ message }) => message === 'Validation aborted.')) throw repeated();
    if (errors.length > 0) throw new AggregateError(errors.slice(0, most_errors));
    return this.#withPages(document);
  }

  /** A list without `first` and `last` has the usual page: PostGraphile would read all rows. */
  #withPages(document: DocumentNode): DocumentNode {
    const info = new TypeInfo(this.#schema);
    return visit(
      document,
      visitWithTypeInfo(info, {
        Field(node) {
          const is_list = info.getFieldDef()?.args.some(({ name }) => name === 'first');
          if (!is_list || node.arguments?.some(({ name }) => ['first', 'last'].includes(name.value))) return undefined;
          const first = {
            kind: Kind.ARGUMENT,
            name: { kind: Kind.NAME, value: 'first' },
            value: { kind: Kind.INT, value: String(default_rows) },
          } as const;
          return { ...node, arguments: [...(node.arguments ?? []), first] };
        },
      }),
    );
  }

  #keep(query: string, document: DocumentNode): DocumentNode {
    if (query.length > longest_kept) return document;
    const [oldest] = this.#valid.keys();
    if (this.#valid.size >= most_kept && oldest !== undefined) this.#valid.delete(oldest);
    this.#valid.set(query, document);
    return document;
  }
}

/** graphql-js compares fields that stand under the same name with each other, and gives up where there are too many. */
const repeated = (): QueryProblem =>
  new QueryProblem('query_too_large', 'The query repeats fields too often to be checked. Name each field once.');

function parsed(query: string): DocumentNode {
  try {
    return parse(query, { maxTokens: most_tokens });
  } catch (error) {
    const { message } = error as GraphQLError;
    if (message.includes('Parsing aborted')) {
      throw new QueryProblem('query_too_large', `The query has more than ${most_tokens} tokens. Send it in parts.`, {
        limit: most_tokens,
      });
    }
    throw new GraphQLError(message, {
      ...(error as GraphQLError),
      originalError: new QueryProblem('syntax_error', message),
    });
  }
}

function operationOf({ definitions }: DocumentNode, name: string | null | undefined): OperationDefinitionNode {
  const operations = definitions.filter((node) => node.kind === Kind.OPERATION_DEFINITION);
  const found = name ? operations.filter((node) => node.name?.value === name) : operations;
  if (found.length === 1) return found[0] as OperationDefinitionNode;
  if (name) throw new QueryProblem('query_invalid', `The query has no operation '${name}', or several of that name.`);
  throw new QueryProblem(
    'query_invalid',
    operations.length === 0
      ? 'The query has no operation.'
      : "The query has several operations. Name one in 'operationName'.",
  );
}

const fragmentsOf = ({ definitions }: DocumentNode): Fragments =>
  new Map(
    definitions
      .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
