/** Errors of GraphQL requests, in GraphQL's own shape: a message, and in `extensions.code` one of these codes. Never a stack, and never SQL. */
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import type { Logger } from 'pino';
import { isUnavailable } from '../../core/postgres/errors.ts';
import { statement_ms } from './limits.ts';

const codes = {
  syntax_error: 'The query cannot be parsed.',
  query_invalid: 'The query does not fit the schema, or its variables do not fit the query.',
  query_too_large: 'The query has more tokens, or more fields once its fragments are written out, than it may.',
  query_too_deep: 'Fields stand deeper in each other than they may.',
  query_too_costly: 'The query asks for more than it may in one request.',
  page_too_large: 'A list is asked for more rows than a page may have.',
  invalid_value: 'A value is not one that its column can be compared with.',
  statement_timeout: `A statement took longer than ${statement_ms / 1_000} seconds. Add conditions, or leave out 'totalCount' and 'aggregates'.`,
  deadline_exceeded: 'The request took longer than it may. Ask for less, or in several requests.',
  service_unavailable: 'The database cannot be reached. Send the request again.',
  internal_error: 'An unexpected error occurred. It is logged under the id in the header Rail-Request-Id.',
} as const;

type Code = keyof typeof codes;

/** A refusal that says why, and what to change. */
export class QueryProblem extends Error {
  readonly code: Code;
  readonly details: Record<string, number>;

  constructor(code: Code, message: string = codes[code], details: Record<string, number> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** What a caller sees of an error. Whatever was not expected is logged, and not shown. */
export function formatted(error: unknown, log: Logger): GraphQLFormattedError {
  const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  const { locations, path } = error instanceof GraphQLError ? error : {};
  const { code, message, details } = problemOf(cause);
  if (code === 'internal_error') log.error({ err: cause }, 'a GraphQL query failed');
  return {
    message,
    ...(locations ? { locations } : {}),
    ...(path ? { path } : {}),
    extensions: { code, ...details },
  };
}

function problemOf(cause: unknown): QueryProblem {
  if (cause instanceof QueryProblem) return cause;
  if (cause instanceof GraphQLError) return new QueryProblem('query_invalid', cause.message);
  const { code: sqlstate = '', name } = cause as { code?: string; name?: string };
  if (sqlstate === '57014') return new QueryProblem('statement_timeout');
  if (/^22/.test(sqlstate)) return new QueryProblem('invalid_value');
  if (isUnavailable(cause)) return new QueryProblem('service_unavailable');
  // What Grafast itself says to callers: a cursor that is none, `first` beside `last`.
  if (name === 'SafeError' || cause?.constructor?.name === 'SafeError')
    return new QueryProblem('query_invalid', (cause as Error).message);
  return new QueryProblem('internal_error');
}
