/** Answers GraphQL requests: PostGraphile's schema over schema data, within limits. Loaded by the first request. */
import {
  type ExecutionResult,
  type FormattedExecutionResult,
  type GraphQLSchema,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { execute } from 'postgraphile/grafast';
import type { Database } from '../../core/postgres/database.ts';
import { tooCostly } from './cost.ts';
import { type Asked, Documents, type Opened } from './document.ts';
import { formatted, type OnUnexpected } from './formatted.ts';
import { Introspections } from './introspection.ts';
import { most_cost } from './limits.ts';
import { QueryProblem } from './problem.ts';
import { buildSchema } from './schema/schema.ts';
import { type Reader, Session } from './session.ts';

/** The time in which the catalogue must be read. */
const opening_ms = 30_000;
/** The time in which a plan must be made. */
const planning_ms = 1_000;

const preset = { grafast: { timeouts: { planning: planning_ms }, explain: false } } as const;

export interface Answered {
  /** Each as JSON. */
  results: string[];
  /** The cost of all operations together. */
  cost: number;
}

export class GraphqlEndpoint {
  readonly schema: GraphQLSchema;
  readonly #database: Database;
  readonly #documents: Documents;
  readonly #introspections = new Introspections();

  private constructor(schema: GraphQLSchema, database: Database) {
    this.schema = schema;
    this.#database = database;
    this.#documents = new Documents(schema);
  }

  /** Reads which views there are, and builds the schema: half a second of CPU, once for each process. */
  static async open(database: Database): Promise<GraphqlEndpoint> {
    const deadline = performance.now() + opening_ms;
    const reader = { organization_id: null, sees_personal: false, deadline, statement_ms: opening_ms };
    const session = new Session(database, reader);
    try {
      return new GraphqlEndpoint(await buildSchema(session.withPgClient), database);
    } finally {
      await session.close();
    }
  }

  /** The schema in GraphQL's own language, its types and fields by name. */
  sdl(): string {
    return printSchema(lexicographicSortSchema(this.schema));
  }

  /** Answers operations one after the other, all in one state of the database. What they cost together is counted before the first one reads. */
  async answer(asked: Asked[], reader: Reader, onUnexpected: OnUnexpected): Promise<Answered> {
    // The thread may have been busy until now.
    if (performance.now() > reader.deadline)
      return { results: asked.map(() => refused([new QueryProblem('deadline_exceeded')], onUnexpected)), cost: 0 };
    const opened = asked.map((one) => this.#open(one));
    const cost = opened.reduce((sum, one) => sum + ('cost' in one ? one.cost : 0), 0);
    if (cost > most_cost) return { results: asked.map(() => refused([tooCostly(cost)], onUnexpected)), cost };
    const session = new Session(this.#database, reader);
    try {
      const results: string[] = [];
      for (const [index, one] of opened.entries()) {
        results.push(
          'errors' in one
            ? refused(one.errors, onUnexpected)
            : await this.#answer(asked[index] as Asked, one, session, onUnexpected),
        );
      }
      return { results, cost };
    } finally {
      // Nobody waits for the end of a transaction that only read.
      void session.close();
    }
  }

  #open(asked: Asked): Opened | { errors: readonly unknown[] } {
    try {
      return this.#documents.open(asked);
    } catch (error) {
      return { errors: error instanceof AggregateError ? error.errors : [error] };
    }
  }

  async #answer(asked: Asked, opened: Opened, session: Session, onUnexpected: OnUnexpected): Promise<string> {
    const run = () => this.#run(asked, opened, session, onUnexpected);
    if (opened.introspection === 'none') return JSON.stringify(await run());
    const { query, operationName, variables } = asked;
    return this.#introspections.answer(JSON.stringify([query, operationName, variables]), async () => {
      const result = await run();
      return { json: JSON.stringify(result), is_lasting: opened.introspection === 'only' && !result.errors };
    });
  }

  async #run(
    { operationName, variables }: Asked,
    { document }: Opened,
    session: Session,
    onUnexpected: OnUnexpected,
  ): Promise<FormattedExecutionResult> {
    if (session.is_over) return { errors: [formatted(new QueryProblem('deadline_exceeded'), onUnexpected)] };
    const result = (await execute({
      schema: this.schema,
      document,
      variableValues: variables ?? {},
      operationName: operationName ?? null,
      contextValue: { pgSettings: null, withPgClient: session.withPgClient },
      resolvedPreset: preset,
    } as never)) as ExecutionResult;
    const { data, errors } = result;
    return {
      ...(errors ? { errors: errors.map((error) => formatted(error, onUnexpected)) } : {}),
      ...(data === undefined ? {} : { data }),
    };
  }
}

const refused = (errors: readonly unknown[], onUnexpected: OnUnexpected): string =>
  JSON.stringify({ errors: errors.map((error) => formatted(error, onUnexpected)) });
