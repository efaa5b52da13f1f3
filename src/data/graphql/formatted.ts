/** Formats the errors of a query for callers. */
import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { isCanceled, isUnavailable } from '../../core/postgres/errors.ts';
import { QueryProblem, shownProblem } from './problem.ts';

/** Handles an unexpected error. */
export type OnUnexpected = (error: unknown) => void;

/** Returns the error that a caller sees. An unexpected one is reported, and not shown. */
export function formatted(error: unknown, onUnexpected: OnUnexpected): GraphQLFormattedError {
  const cause = error instanceof GraphQLError ? (error.originalError ?? error) : error;
  const { locations, path } = error instanceof GraphQLError ? error : {};
  const problem = problemOf(cause);
  if (problem.code === 'internal_error') onUnexpected(cause);
  return { ...shownProblem(problem), ...(locations ? { locations } : {}), ...(path ? { path } : {}) };
}

const wrong_cursor =
  "'after' and 'before' must be a cursor of this list in this order: 'endCursor' or 'startCursor' of a page, or 'cursor' of an edge.";

function problemOf(cause: unknown): QueryProblem {
  if (cause instanceof QueryProblem) return cause;
  if (cause instanceof GraphQLError) return new QueryProblem('query_invalid', cause.message);
  const { code: sqlstate = '', name } = cause as { code?: string; name?: string };
  if (isCanceled(cause)) return new QueryProblem('statement_timeout');
  if (/^22/.test(sqlstate)) return new QueryProblem('invalid_value');
  if (isUnavailable(cause)) return new QueryProblem('service_unavailable');
  // Grafast's own messages to callers: an invalid cursor, `first` beside `last`, a plan that took too long.
  if (name === 'SafeError' || cause?.constructor?.name === 'SafeError') {
    const { message } = cause as Error;
    if (message.includes('too long to plan')) return new QueryProblem('deadline_exceeded');
    return new QueryProblem('query_invalid', /cursor/.test(message) ? wrong_cursor : message);
  }
  return new QueryProblem('internal_error');
}
