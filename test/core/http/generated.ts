/** Requests made up from the OpenAPI description, right ones and wrong ones, and what every answer to them must be. */
import { isDeepStrictEqual } from 'node:util';
import fc, { type Arbitrary } from 'fast-check';
import { resolve, type Schema, type Schemas } from '../../../src/core/description/json_schema.ts';
import type { Document, Parameter, PathOperation } from '../../../src/core/description/openapi_parts.ts';
import { errorsOf } from '../../../src/core/description/operation_errors.ts';
import type { Operation } from '../../../src/core/resource/operation.ts';
import { type ProblemCode, problems } from '../../../src/core/values/problem.ts';
import { program } from '../../../src/program/index.ts';
import type { Answer, Caller } from '../../harness.ts';
import { resourceNamedBy, resources, World } from '../../samples.ts';

const { operations } = program;
export interface GeneratedRequest {
  /** Of the operation. */
  name: string;
  path: string;
  body: string | undefined;
}

/** The ids that there are, by resource: a request that names nothing that exists does not get far. */
export type Known = Record<string, string[]>;

/** One object of each kind that the API can make without a worker. */
export async function makeKnown(caller: Caller): Promise<Known> {
  const world = new World(caller, 'http://127.0.0.1:9/');
  const made = ['programs', 'groups', 'tags', 'partners', 'links', 'coupons', 'clicks', 'customers', 'rules', 'sales'];
  const known: Known = {};
  for (const plural of [...made, 'commissions', 'webhook_endpoints', 'applications']) {
    if (resources.includes(plural)) known[plural] = [(await world.fixture(plural)).id];
  }
  return known;
}

/** Any request to any operation. */
export function requestsOf(document: Document, known: Known): Arbitrary<GeneratedRequest> {
  return fc.oneof(...operations.map((operation) => requestOf(operation, document, known)));
}

function requestOf(operation: Operation, document: Document, known: Known): Arbitrary<GeneratedRequest> {
  const { schemas } = document.components;
  const { parameters = [], requestBody } = describedOf(operation, document);
  const [, plural = ''] = /\/([a-z_]+)\/\{id\}/.exec(operation.path) ?? [];
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const schema = requestBody?.content['application/json']?.schema;
  return fc
    .record({
      id: fc.oneof({ arbitrary: idOf(plural, known), weight: 4 }, { arbitrary: unusual, weight: 1 }),
      query: fc.oneof(queryOf(query, schemas, known), fc.constant('')),
      body: operation.method === 'GET' ? fc.constant(undefined) : bodyOf(schema ?? {}, schemas, known),
    })
    .map(({ id, query, body }) => ({
      name: operation.name,
      path: operation.path.replace(/\{\w+\}/g, () => encodeURIComponent(id.toWellFormed())) + query,
      body,
    }));
}

/** A client takes a dot for the folder that it is in. */
const unusual = fc.string({ minLength: 1 }).filter((id) => !/^\.{1,2}$/.test(id));

const describedOf = ({ path, method }: Operation, { paths }: Document): PathOperation =>
  (paths[path] as Record<string, PathOperation>)[method.toLowerCase()] as PathOperation;

const idOf = (plural: string, known: Known): Arbitrary<string> =>
  fc.constantFrom(...(known[plural] ?? []), 'nothing', `${plural}_01kap3b6n8f2v9w4x7y0z1a2b3`);

/** A right body, one with a value of any kind in place of a right one, one with a field too many, and any text. */
function bodyOf(schema: Schema, schemas: Schemas, known: Known): Arbitrary<string | undefined> {
  const right = allowedBy(schema, schemas, known, '').map((value) => value as object);
  const names = Object.keys(resolve(schema, schemas).properties ?? {});
  const wrong = fc
    .tuple(right, fc.constantFrom('misspelt', ...names), fc.oneof(fc.jsonValue(), extremes))
    .map(([body, name, value]) => ({ ...body, [name]: value }));
  return fc.oneof(
    { arbitrary: right.map((body) => JSON.stringify(body)), weight: 6 },
    { arbitrary: wrong.map((body) => JSON.stringify(body)), weight: 4 },
    { arbitrary: fc.oneof(fc.json(), fc.string(), fc.constant(undefined)), weight: 1 },
  );
}

const extremes = fc.constantFrom<unknown[]>(
  ...[0, -0, -1, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 5e-324, 0.1, '', ' ', '\0', '\ud800', 'a'.repeat(70_000)],
  ...[[], {}, [[]], [null], true, '2026-13-45T99:99:99Z', '9999-12-31T23:59:59Z', 'https://', "'; select 1 --", '%00'],
);

function queryOf(parameters: Parameter[], schemas: Schemas, known: Known): Arbitrary<string> {
  const fields = parameters.map(({ name, schema, required }) => [
    name,
    fc.option(
      fc.oneof(
        { arbitrary: allowedBy(schema, schemas, known, name).map(String), weight: 4 },
        { arbitrary: fc.oneof(fc.string(), extremes.map(String)), weight: 1 },
      ),
      { nil: undefined, freq: required ? 9 : 1 },
    ),
  ]);
  return fc.record(Object.fromEntries(fields) as Record<string, Arbitrary<string | undefined>>).map((query) => {
    const sent = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value.toWellFormed()]],
    );
    return `?${new URLSearchParams(sent as [string, string][])}`;
  });
}

/** A value that a schema allows. */
function allowedBy(given: Schema, schemas: Schemas, known: Known, name: string): Arbitrary<unknown> {
  const schema = resolve(given, schemas);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) return fc.oneof(...branches.map((branch) => allowedBy(branch, schemas, known, name)));
  const types = [schema.type ?? []].flat();
  if (types.length > 1) return fc.oneof(...types.map((type) => allowedBy({ ...schema, type }, schemas, known, name)));
  switch (types[0]) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return fc.maxSafeInteger().map((number) => within(number, schema));
    case 'string':
      return textOf(schema, known, name);
    case 'array':
      return fc.array(allowedBy(schema.items ?? {}, schemas, known, name), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, 5),
      });
    case 'object':
      return objectOf(schema, schemas, known);
    default:
      return fc.jsonValue();
  }
}

/** Mostly small, as amounts are. */
function within(number: number, { minimum = -(2 ** 53) + 1, maximum = 2 ** 53 - 1, exclusiveMinimum }: Schema): number {
  const least = exclusiveMinimum === undefined ? minimum : exclusiveMinimum + 1;
  const range = Math.min(maximum - least, number % 2 === 0 ? 100 : Number.MAX_SAFE_INTEGER) + 1;
  return Math.min(maximum, Math.max(least, 0, least) + (Math.abs(number) % range));
}

function textOf(
  { format, pattern, minLength = 0, maxLength = 40 }: Schema,
  known: Known,
  name: string,
): Arbitrary<string> {
  const plural = resourceNamedBy(name);
  if (plural) return idOf(plural, known);
  if (name === 'currency') return fc.constantFrom('USD', 'EUR', 'JPY');
  if (format === 'date-time') {
    const options = { min: new Date('1990-01-01'), max: new Date('2060-01-01'), noInvalidDate: true };
    return fc.date(options).map((date) => date.toISOString());
  }
  if (format === 'email') return fc.stringMatching(/^[a-z0-9!#$%&'*+/=?^_{|}~-]{1,30}@[a-z]{2,9}\.example$/);
  if (format === 'uri' || name.endsWith('url')) return fc.webUrl({ withQueryParameters: true });
  if (pattern) return fc.stringMatching(new RegExp(pattern));
  return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)), unit: 'binary-ascii' });
}

function objectOf({ properties = {}, required = [], additionalProperties }: Schema, schemas: Schemas, known: Known) {
  if (Object.keys(properties).length === 0 && additionalProperties)
    return fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 });
  const fields = Object.entries(properties).map(([name, field]) => [name, allowedBy(field, schemas, known, name)]);
  return fc.record(Object.fromEntries(fields), { requiredKeys: required as never[] });
}

/** Sends the request. @throws Error where the answer is none that the description allows */
export async function answerOf(caller: Caller, request: GeneratedRequest, document: Document): Promise<Answer> {
  const { name, path, body } = request;
  const operation = operations.find((one) => one.name === name) as Operation;
  const answer = await caller.request(operation.method, path, body);
  const fault = faultOf(operation, answer, document);
  if (fault) throw new Error(`${fault}: ${operation.method} ${path} ${body} answered ${answer.status} ${answer.text}`);
  return answer;
}

const every_header = [
  'rail-request-id',
  'x-rail-version',
  'x-rail-livemode',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
];
const security_headers = ['x-ratelimit-reset', 'cache-control', 'x-content-type-options'];

function faultOf(operation: Operation, { status, headers, body }: Answer, document: Document): string | undefined {
  const { responses } = describedOf(operation, document);
  const missing = [...every_header, ...security_headers].find((name) => headers[name] === undefined);
  if (missing) return `the header ${missing} is missing`;
  if (status >= 500) return 'the service failed';
  if (!(status in responses)) return 'the status is not described';
  if (status < 300) {
    const { other_reply } = operation;
    const reply = other_reply?.status === status && operation.status !== status ? other_reply.reply : operation.reply;
    const { success, data } = reply.safeParse(body);
    return success && isDeepStrictEqual(data, body) ? undefined : 'the reply is not as its schema has it';
  }
  const { code, type, message } = body.error ?? {};
  const problem = problems[code as ProblemCode];
  if (problem?.status !== status || problem.type !== type) return 'the error is not in the catalogue';
  if (!errorsOf(operation).includes(code)) return 'the operation does not name the code';
  return /\.$/.test(message) ? undefined : 'the message is no sentence';
}
