/** Classifies errors of Postgres: worth another try, or a problem of the request. */
import type pg from 'pg';
import { Problem } from '../values/problem.ts';

/** Returns whether Postgres cannot be reached, or takes no writes, and the statement is not at fault. */
export function isUnavailable(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined) {
    return /^(08|57P0[1-5]|53[0-3]00|25006|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOSTUNREACH)/.test(code);
  }
  return /Connection terminated|timeout expired|timeout exceeded when trying to connect|not queryable|Client was closed/.test(
    message ?? '',
  );
}

/** Returns what an operator is told of an error, and what to do where all connections of Postgres are in use. */
export function textOf(error: unknown): string {
  const { code, message, name } = error as { code?: string; message?: string; name?: string };
  const text = message || code || name || String(error);
  if (code !== '53300') return text;
  return `Postgres has no connections left (${text}): end sessions that nobody needs, raise max_connections, or lower DATABASE_POOL_SIZE.`;
}

/** Another transaction changed what this one has read: it is rolled back and run again as it is. */
export class LostRace extends Error {
  override readonly name = 'LostRace';
  /** The code of Postgres for the same: a serialization failure. */
  readonly code = '40001';
}

/** Returns whether the transaction was aborted because of another one and can be run again as it is (deadlock, serialization failure). */
export const isRetryable = (error: unknown): boolean =>
  ['40P01', '40001'].includes((error as { code?: string }).code ?? '');

/**
 * Returns whether the transaction lost a race: another one committed the same unique value first, or deleted a row that this one references. Run
 * again, it reads the other one's row, or finds it gone.
 */
export const hasLostRace = (error: unknown): boolean =>
  ['23505', '23503'].includes((error as { code?: string }).code ?? '');

/** Turns an error of Postgres about bad values into a problem; returns any other error unchanged. */
export function translateError(error: unknown): unknown {
  const { code } = error as { code?: string };
  if (code === '22021' || code === '22P05') return unstorableText();
  if (code === '23505') return duplicate(error as pg.DatabaseError);
  if (code === '22003')
    return new Problem('invalid_parameter', 'A number is too large to be stored. Send a smaller one.');
  if (code === '22008' || code === '22009') {
    return new Problem('invalid_parameter', 'A time is out of range and cannot be stored. Send one closer to today.');
  }
  return error;
}

/** Returns whether a statement was ended because it took too long, or because nobody waits for it any more. */
export const isCanceled = (error: unknown): boolean => (error as { code?: string }).code === '57014';

/** Returns whether a statement waited too long for a lock, or took too long. */
const isLate = (error: unknown): boolean => (error as { code?: string }).code === '55P03' || isCanceled(error);

/** @returns the problem of a request that Postgres did not let through now; undefined where another try would fail too */
export function unavailability(error: unknown): Problem | undefined {
  if (isLate(error)) {
    return new Problem('service_unavailable', `${locked} Retry with the same idempotency key.`, {
      headers: { 'Retry-After': '5' },
    });
  }
  if (!isUnavailable(error)) return undefined;
  return new Problem('service_unavailable', `${away} Retry with the same idempotency key.`, {
    headers: { 'Retry-After': '1' },
  });
}

const locked = 'The request took too long, because the database is busy or keeps locked what it needs.';
const away = 'The service cannot reach its database.';

/** @param param where the text stands, as far as that is known */
export const unstorableText = (param = ''): Problem =>
  new Problem(
    'invalid_parameter',
    `${param === '' ? 'A text' : `'${param}'`} contains a NUL or malformed Unicode character, which cannot be stored. Remove it.`,
    param === '' ? {} : { param },
  );

/** The meaning of a unique constraint or index of a tenant table. */
export interface Unique {
  /** The `object` of the table's records. */
  noun: string;
  /** The field that callers send; null where the service chooses the value, or where it is not a field. */
  field: string | null;
}

const unique_constraints = new Map<string, Unique>();

/** Declares the unique constraints of a table, by name. A resource does so with its option `unique`. */
export function declareUnique(noun: string, constraints: Record<string, string | null>): void {
  for (const [name, field] of Object.entries(constraints)) unique_constraints.set(name, { noun, field });
}

/** @returns undefined for a constraint that nothing declares, such as a primary key */
export const declaredUnique = (constraint: string): Unique | undefined => unique_constraints.get(constraint);

function duplicate({ constraint = '', table = 'object' }: pg.DatabaseError): Problem {
  const { noun, field } = declaredUnique(constraint) ?? { noun: table, field: null };
  const same = field === null ? 'with these values' : `with this ${field}`;
  return new Problem(
    'resource_already_exists',
    `Another ${noun.replaceAll('_', ' ')} ${same} exists. Use it, or send a different value.`,
    field === null ? {} : { param: field },
  );
}
