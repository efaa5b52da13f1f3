import { z } from 'zod';
import type { Operation } from '../resource/operation.ts';
import type { ProblemCode } from '../values/problem.ts';
import type { Schema } from './json_schema.ts';

/** The errors of every operation: about the key, its rate, the version, and internal faults. */
export const errors_of_all: ProblemCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'revoked_api_key',
  'expired_api_key',
  'signature_required',
  'signature_invalid',
  'signature_expired',
  'insufficient_scope',
  'ip_not_allowed',
  'invalid_parameter',
  'unknown_parameter',
  'rate_limit_exceeded',
  'request_timeout',
  'headers_too_large',
  'expectation_failed',
  'internal_error',
  'service_unavailable',
];

/** The further errors of every operation that is no GET. */
export const errors_of_bodies: ProblemCode[] = ['invalid_json', 'payload_too_large', 'unsupported_media_type'];

/** And what every POST may, because it may carry an idempotency key. */
export const errors_of_keys: ProblemCode[] = ['idempotency_key_reused', 'idempotency_key_in_flight'];

/** The errors of paths and methods that do not exist. */
export const errors_of_requests: ProblemCode[] = ['route_not_found', 'method_not_allowed'];

/** Every code that an operation can answer, once: what follows from what it takes, and what it says of itself. */
export const errorsOf = (operation: Operation): ProblemCode[] => [...new Set(allOf(operation))];

const allOf = (operation: Operation): ProblemCode[] => [
  ...errors_of_all,
  ...(operation.method === 'GET' ? [] : errors_of_bodies),
  ...(operation.method === 'POST' ? errors_of_keys : []),
  ...ownErrorsOf(operation),
];

/** Returns the errors that not all operations of its kind have. */
export function ownErrorsOf({ path, query, body, test_keys, errors = [] }: Operation): ProblemCode[] {
  const fields = [query, body].flatMap(fieldsOf);
  const demands = !query.safeParse({}).success || !body.safeParse(undefined).success;
  const when = (holds: boolean, code: ProblemCode) => (holds ? [code] : []);
  return [
    ...when(demands, 'missing_parameter'),
    ...when(fields.includes('expand'), 'invalid_expand'),
    ...when(fields.includes('include'), 'invalid_include'),
    ...when(fields.includes('starting_after'), 'invalid_cursor'),
    ...when(test_keys === false, 'test_key_not_allowed'),
    ...when(path.includes('{') || fields.some((field) => field.endsWith('_id')), 'resource_not_found'),
    ...errors,
  ];
}

/** By schema: each operation is asked for its errors several times, and a schema takes its time to be read. */
const fields_known = new WeakMap<z.ZodType, string[]>();

function fieldsOf(schema: z.ZodType): string[] {
  const known = fields_known.get(schema);
  if (known) return known;
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema;
  fields_known.set(schema, Object.keys(properties));
  return Object.keys(properties);
}
