import { z } from 'zod';
import { sampleId, timestamp } from './fields.ts';
import { anyJson, opened, override, type Schema } from './json_schema.ts';
import { json, type Parameter, type PathOperation, parameter } from './openapi_parts.ts';

/** What the description needs to know of a type of event. */
export interface DescribedEvent {
  doc: string;
  data: z.ZodType;
  postback: false | { omit: string[] };
  example: object;
}

/** `SaleCreatedEvent` of `sale.created`. */
export const eventName = (type: string): string =>
  `${type.replaceAll(/(^|[._])([a-z])/g, (_, __, letter: string) => letter.toUpperCase())}Event`;

/** The whole body of an event of the type. */
export function envelopeSchema(type: string, { doc, data }: DescribedEvent, prefix: string): Schema {
  const envelope = z.object({
    id: z.string().describe(`\`${prefix}_…\`: de-duplicate on it. A test event's begins with \`${prefix}_test_\`.`),
    type: z.literal(type),
    created_at: timestamp.describe('When it happened. ISO 8601, UTC.'),
    data,
    request: z
      .object({ id: z.string().nullable().describe('Equals the header Rail-Request-Id. Null: nothing caused it.') })
      .optional()
      .describe('What caused it; not on test events.'),
  });
  const { $schema: _, ...schema } = z.toJSONSchema(envelope, { override, unrepresentable: 'any' });
  return { ...opened(anyJson(schema) as Schema), description: doc };
}

/** The request that tells of an event of the type. */
export function webhook(
  type: string,
  { doc, postback, example }: DescribedEvent,
  prefix: string,
): { post: PathOperation } {
  const told =
    postback === false
      ? 'Partner postbacks do not receive it.'
      : `Partner postbacks receive it${postback.omit.length > 0 ? `, without ${postback.omit.map((name) => `\`${name}\``).join(', ')}` : ''}.`;
  const envelope = {
    id: sampleId(prefix),
    type,
    created_at: '2026-11-21T09:30:00.000Z',
    data: example,
    request: { id: sampleId('req') },
  };
  return {
    post: {
      operationId: `events.${type}`,
      summary: type,
      description: `${doc}\n\n${told}`,
      'x-postback': postback !== false,
      security: [],
      parameters: webhook_headers,
      requestBody: {
        required: true,
        content: { [json]: { schema: { $ref: `#/components/schemas/${eventName(type)}` }, example: envelope } },
      },
      responses: {
        '2XX': { description: 'Within 10 seconds: the delivery is acknowledged.' },
        default: { description: 'The attempt failed, and is made again by the schedule of retries.' },
      },
    },
  };
}

const text: Schema = { type: 'string' };
const always = { required: true };
const webhook_headers: Parameter[] = [
  {
    ...parameter('Rail-Signature', '`t=<unix seconds>,v1=<hex HMAC-SHA256>`; two `v1` during a rotation.', text),
    ...always,
  },
  { ...parameter('Rail-Event', "The event's type.", text), ...always },
  { ...parameter('Rail-Event-Id', "The event's id, the same on retries and replays.", text), ...always },
  { ...parameter('Rail-Delivery-Id', 'This delivery; a replay has a new one.', text), ...always },
  { ...parameter('Rail-Attempt', '1 for the first try.', { type: 'integer', minimum: 1, maximum: 8 }), ...always },
  parameter('Rail-Request-Id', 'What caused the event; absent when nothing did.', text),
  { ...parameter('webhook-id', "Standard Webhooks: the event's id.", text), ...always },
  { ...parameter('webhook-timestamp', 'Standard Webhooks: Unix seconds.', text), ...always },
  {
    ...parameter('webhook-signature', 'Standard Webhooks: `v1,<base64 HMAC-SHA256>`, separated by spaces.', text),
    ...always,
  },
];
