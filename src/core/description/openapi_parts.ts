import { STATUS_CODES } from 'node:http';
import { api_version } from '../values/api.ts';
import { sampleId } from '../values/fields.ts';
import { type ProblemCode, problems } from '../values/problem.ts';
// The schema `Error`, which refusals refer to.
import '../values/error_body.ts';
import type { Schema, Schemas } from './json_schema.ts';

export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
  /** `x-disabled`: Scalar shows the value, and sends it only when it is switched on. */
  examples?: Record<string, { value: unknown; 'x-disabled': boolean }>;
}

export interface Media {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, { summary: string; value: unknown }>;
}

export interface Response {
  $ref?: string;
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, Media>;
}

export interface PathOperation {
  operationId: string;
  summary: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; description?: string; content: Record<string, Media> };
  responses: Record<string, Response>;
  security?: object[];
  'x-scope'?: string;
  /** Every code that it can answer. */
  'x-errors'?: ProblemCode[];
  'x-postback'?: boolean;
}

export interface Document {
  openapi: string;
  info: { title: string; summary: string; version: string; description: string };
  servers: [{ url: string; description: string }];
  tags: { name: string; 'x-displayName': string; description: string }[];
  paths: Record<string, Record<string, PathOperation>>;
  webhooks: Record<string, { post: PathOperation }>;
  components: {
    schemas: Schemas;
    parameters: Record<string, Parameter>;
    headers: Record<string, object>;
    responses: Record<string, Response>;
    securitySchemes: object;
  };
}

/** The one media type. */
export const json = 'application/json';
const header = (description: string, schema: Schema) => ({ description, schema });

export const headers = {
  'X-Rail-Version': header('The version of the API.', { type: 'string', examples: [api_version] }),
  'X-Rail-Livemode': header('`false` for requests with a test key, otherwise `true`.', {
    type: 'string',
    enum: ['true', 'false'],
  }),
  'X-RateLimit-Limit': header('The number of requests that the key can make per second.', { type: 'integer' }),
  'X-RateLimit-Remaining': header('The number of requests left in this second.', { type: 'integer' }),
  'X-RateLimit-Reset': header('The Unix time, in seconds, at which the next second begins.', { type: 'integer' }),
  'Rail-Request-Id': header('The id of this request. Include it when you ask for help.', {
    type: 'string',
    examples: [sampleId('req')],
  }),
  'Cache-Control': header('`no-store`: responses hold data of your organization.', { type: 'string' }),
  'X-Content-Type-Options': header('Tells browsers to take the content type as it is.', {
    type: 'string',
    const: 'nosniff',
  }),
  'Strict-Transport-Security': header('Present where the address of the service is https.', { type: 'string' }),
  'Idempotent-Replayed': header(
    '`true` if this is the stored first response to the idempotency key. Otherwise absent.',
    {
      type: 'string',
      const: 'true',
    },
  ),
  'Retry-After': header('The number of seconds to wait before you retry.', { type: 'integer' }),
};

/** The headers of every response, of these. */
export const every_response = Object.keys(headers).filter(
  (name) => !['Idempotent-Replayed', 'Retry-After'].includes(name),
);

export const parameter = (name: string, description: string, schema: Schema): Parameter => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
});

/** The headers that a request may carry. None has an example or a fixed value: clients would send it by themselves. */
export const parameters = {
  IdempotencyKey: parameter(
    'Idempotency-Key',
    'A unique value of your choice, such as a UUID, that makes the request safe to retry. For 24 hours, requests with the same key return the first response.',
    { type: 'string', minLength: 1, maxLength: 255 },
  ),
  RailVersion: parameter(
    'Rail-Version',
    `Pins the version of the API: \`${api_version}\` is the only version. Any other value is refused with a 400.`,
    { type: 'string' },
  ),
  RailSignature: parameter(
    'Rail-Signature',
    'Signs the request: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<raw body>", with the full API key as the HMAC key>`. Required only if the key requires signatures.',
    { type: 'string' },
  ),
};

export const headerRefs = (names: string[]): Record<string, object> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** `NotFound` of 404. */
export const responseName = (status: string): string => (STATUS_CODES[status] as string).replaceAll(/[^A-Za-z]/g, '');

export function errorResponse(status: string, those: ProblemCode[]): Response {
  const examples = those.map((code) => {
    const { type, doc } = problems[code];
    return [code, { summary: doc, value: { error: { type, code, message: doc } } }];
  });
  return {
    description: `${STATUS_CODES[status]}: ${those.map((code) => `\`${code}\``).join(', ')}.`,
    headers: headerRefs([...every_response, ...(['409', '429', '503'].includes(status) ? ['Retry-After'] : [])]),
    content: { [json]: { schema: { $ref: '#/components/schemas/Error' }, examples: Object.fromEntries(examples) } },
  };
}
