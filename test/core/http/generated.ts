/** Requests made up from the OpenAPI description, right ones and wrong ones, and what every answer to them must be. */
import { isDeepStrictEqual } from 'node:util';
import fc, { type Arbitrary } from 'fast-check';
import { resolve, type Schema, type Schemas } from '../../../src/core/description/json_schema.ts';
import type { Document, Parameter, PathOperation } from '../../../src/core/description/openapi_parts.ts';
import { errorsOf } from '../../../src/core/description/operation_errors.ts';
import type { Operation } from '../../../src/core/resource/operation.ts';
import { type ProblemCode, problems } from '../../../src/core/values/problem.ts';
import { products } from '../../../src/products.ts';
import { type Answer, type Caller, type Rail, startReceiver } from '../../harness.ts';
import { resourceNamedBy, resourceOf, resources, World } from '../../samples.ts';

export interface GeneratedRequest {
  /** The name of the operation. */
  name: string;
  path: string;
  body: string | undefined;
}

/** The ids that there are, by resource: a request that names nothing that exists does not get far. */
export type Known = Record<string, string[]>;

/** An operation, and the document of its product. */
interface DescribedOperation {
  operation: Operation;
  document: Document;
}

/** By the name of the operation, of all products. */
export type Descriptions = Map<string, DescribedOperation>;

export async function describe(caller: Caller): Promise<Descriptions> {
  const described = products.map(async ({ loadApi, events }) => {
    const { operations } = await loadApi();
    const document = (await caller.get(`${events.path}/openapi.json`)) as Document;
    return operations.map((operation): [string, DescribedOperation] => [operation.name, { operation, document }]);
  });
  return new Map((await Promise.all(described)).flat());
}

/** These come about in a worker. */
const made_by_worker = ['payouts', 'payout_batches', 'webhook_deliveries', 'recruitment_webhook_deliveries'];

/** One object of each kind that comes about without a worker. */
export async function makeKnown(rail: Rail, caller: Caller): Promise<Known> {
  const { url } = await startReceiver();
  const world = new World(caller, url, caller, rail);
  const known: Known = {};
  for (const plural of resources) {
    if (!made_by_worker.includes(plural)) known[plural] = [(await world.fixture(plural)).id];
  }
  return known;
}

/** Any request to any operation. */
export function requestsOf(descriptions: Descriptions, known: Known): Arbitrary<GeneratedRequest> {
  return fc.oneof(...[...descriptions.values()].map((described) => requestOf(described, known)));
}

function requestOf({ operation, document }: DescribedOperation, known: Known): Arbitrary<GeneratedRequest> {
  const { schemas } = document.components;
  const { parameters = [], requestBody } = describedOf(operation, document);
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const schema = requestBody?.content['application/json']?.schema;
  return fc
    .record({
      path: pathOf(operation, parameters, schemas, known),
      query: fc.oneof(queryOf(query, schemas, known), fc.constant('')),
      body: operation.method === 'GET' ? fc.constant(undefined) : bodyOf(schema ?? {}, schemas, known),
    })
    .map(({ path, query, body }) => ({ name: operation.name, path: path + query, body }));
}

/** The path with something in place of each of its parameters, mostly what there is. */
function pathOf({ path }: Operation, parameters: Parameter[], schemas: Schemas, known: Known): Arbitrary<string> {
  const [, resource = ''] = /^(.*)\/\{id\}/.exec(path) ?? [];
  const filled = parameters
    .filter((parameter) => parameter.in === 'path')
    .map(({ name, schema }) => [
      name,
      fc.oneof(
        {
          arbitrary: name === 'id' ? idOf(resourceOf(resource), known) : allowedBy(schema, schemas, known, name),
          weight: 4,
        },
        { arbitrary: unusual, weight: 1 },
      ),
    ]);
  return fc
    .record(Object.fromEntries(filled) as Record<string, Arbitrary<unknown>>)
    .map((values) => path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(`${values[name]}`.toWellFormed())));
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
export async function answerOf(
  caller: Caller,
  { name, path, body }: GeneratedRequest,
  descriptions: Descriptions,
): Promise<Answer> {
  const described = descriptions.get(name) as DescribedOperation;
  const { operation } = described;
  const answer = await caller.request(operation.method, path, body);
  const fault = faultOf(described, answer);
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

function faultOf({ operation, document }: DescribedOperation, answer: Answer): string | undefined {
  const { status, headers, body } = answer;
  const { responses } = describedOf(operation, document);
  const missing = [...every_header, ...security_headers].find((name) => headers[name] === undefined);
  if (missing) return `the header ${missing} is missing`;
  if (status >= 500) return 'the service failed';
  if (!(status in responses)) return 'the status is not described';
  if (status < 300) return faultOfReply({ operation, document }, answer);
  const { code, type, message } = body.error ?? {};
  const problem = problems[code as ProblemCode];
  if (problem?.status !== status || problem.type !== type) return 'the error is not in the catalogue';
  if (!errorsOf(operation).includes(code)) return 'the operation does not name the code';
  return /\.$/.test(message) ? undefined : 'the message is no sentence';
}

function faultOfReply({ operation, document }: DescribedOperation, answer: Answer): string | undefined {
  const { status, headers, body } = answer;
  const [type = ''] = headers['content-type']?.toString().split(';') ?? [];
  const { content = {} } = describedOf(operation, document).responses[status] ?? {};
  if (!(type in content)) return 'the media type is not described';
  if (type !== 'application/json' && !operation.is_feed) return undefined;
  const { other_reply } = operation;
  const reply = other_reply?.status === status && operation.status !== status ? other_reply.reply : operation.reply;
  const isAsDescribed = (one: unknown): boolean => {
    const { success, data } = reply.safeParse(one);
    return success && isDeepStrictEqual(data, one);
  };
  const replies: unknown[] = operation.is_feed ? body.data : [body];
  return replies.every(isAsDescribed) ? undefined : 'the reply is not as its schema has it';
}
