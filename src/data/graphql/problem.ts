/** Errors of GraphQL requests, in GraphQL's own shape: a message, and in `extensions.code` one of these codes. Never a stack, and never SQL. */
import { statement_ms } from './limits.ts';

const codes = {
  syntax_error: 'The query cannot be parsed.',
  query_invalid: 'The query does not fit the schema, or its variables do not fit the query.',
  query_too_large: 'The query has more tokens, or more fields once its fragments are written out, than it may.',
  query_too_deep: 'Fields are nested more deeply than is allowed.',
  query_too_costly: 'The query asks for more than it may in one request.',
  page_too_large: 'A list is asked for more rows than a page may have.',
  invalid_value: 'A value is not valid for the column that it is compared with.',
  statement_timeout: `A statement took longer than ${statement_ms / 1_000} seconds. Add conditions, or leave out 'totalCount' and 'aggregates'.`,
  deadline_exceeded: 'The request took too long. Ask for less, or split it into several requests.',
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

/** Returns the form of a problem in an answer. */
export const shownProblem = ({ code, message, details }: QueryProblem) => ({
  message,
  extensions: { code, ...details },
});
