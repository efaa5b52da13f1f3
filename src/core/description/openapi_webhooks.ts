import { z } from 'zod';
import { sampleId, timestamp } from '../values/fields.ts';
import { anyJson, opened, override, type Schema, saidOutside } from './json_schema.ts';
import { json, type Parameter, type PathOperation, parameter } from './openapi_parts.ts';

/** What the description needs to know of a type of event. */
export interface DescribedEvent {
  doc: string;
  data: z.ZodObject;
  postback: false | { omit: string[] };
  example: object;
}

/** How events are delivered. The numbers are those that the sender goes by. */
export interface DeliveryTerms {
  user_agent: string;
  /** How long a receiver may take to answer. */
  timeout_ms: number;
  /** The least wait before each attempt but the first. */
  waits_s: number[];
  /** Minutes of the hour at which retries that are due are made. */
  sweep_minutes: number[];
  /** How long a secret signs on after a rotation. */
  overlap_ms: number;
  /** How long events and deliveries are kept, which is how far back they can be replayed. */
  kept_days: number;
  most_endpoints: number;
  /** When an endpoint that fails is switched off. */
  switch_off: { least_failures: number; within_days: number; span_days: number };
}

/** `SaleCreatedEvent` of `sale.created`. */
export const eventName = (type: string): string =>
  `${type.replaceAll(/(^|[._])([a-z])/g, (_, __, letter: string) => letter.toUpperCase())}Event`;

/** The whole body of an event of the type. */
export function envelopeSchema(type: string, { doc, data, postback }: DescribedEvent, prefix: string): Schema {
  const envelope = z.object({
    id: z.string().describe(`\`${prefix}_…\`: de-duplicate on it. A test event's begins with \`${prefix}_test_\`.`),
    type: z.literal(type).describe('What happened.'),
    created_at: timestamp.describe('When it happened. ISO 8601, UTC.'),
    data: withOmissible(data, postback).describe('What it happened to; its fields go by the type.'),
    request: z
      .object({ id: z.string().nullable().describe('Equals the header Rail-Request-Id. Null: nothing caused it.') })
      .optional()
      .describe('What caused it; not on test events.'),
  });
  const { $schema: _, ...schema } = z.toJSONSchema(envelope, { override, unrepresentable: 'any' });
  return { ...opened(saidOutside(anyJson(schema) as Schema)), description: doc };
}

/** One schema describes what all endpoints receive: what postbacks do not see need not be there. */
const withOmissible = (data: z.ZodObject, postback: DescribedEvent['postback']): z.ZodObject =>
  postback === false
    ? data
    : data.extend(Object.fromEntries(postback.omit.map((name) => [name, (data.shape[name] as z.ZodType).optional()])));

/** The request that tells of an event of the type. */
export function webhook(
  type: string,
  { doc, postback, example }: DescribedEvent,
  prefix: string,
  terms: DeliveryTerms,
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
      parameters: webhookHeaders(type, prefix, terms),
      requestBody: {
        required: true,
        content: { [json]: { schema: { $ref: `#/components/schemas/${eventName(type)}` }, example: envelope } },
      },
      responses: {
        '2XX': { description: `Within ${terms.timeout_ms / 1000} seconds: the delivery is acknowledged.` },
        default: {
          description:
            'Anything else, a redirect and no answer too: the attempt failed, and is made again by the schedule of retries.',
        },
      },
    },
  };
}

const text = (example: string): Schema => ({ type: 'string', examples: [example] });
const always = (name: string, description: string, schema: Schema): Parameter => ({
  ...parameter(name, description, schema),
  required: true,
});

const hmac = '0123456789abcdef'.repeat(4);
const webhookHeaders = (type: string, prefix: string, { waits_s, user_agent }: DeliveryTerms): Parameter[] => [
  always('User-Agent', 'Who sends it.', { type: 'string', const: user_agent }),
  always(
    'Rail-Signature',
    'Proves that the service sent exactly this body: see "Verifying a webhook". Two `v1` during a rotation of the secret.',
    text(`t=1795253400,v1=${hmac}`),
  ),
  always('Rail-Event', "The event's type, as `type` in the body.", { type: 'string', const: type }),
  always(
    'Rail-Event-Id',
    "The event's id, as `id` in the body: the same on every retry and replay, so de-duplicate on it.",
    text(sampleId(prefix)),
  ),
  always('Rail-Delivery-Id', 'This delivery, as in the delivery log; a replay has a new one.', text(sampleId('whd'))),
  always('Rail-Attempt', 'Which attempt at this delivery it is: 1 for the first.', {
    type: 'integer',
    minimum: 1,
    maximum: waits_s.length + 1,
    examples: [1],
  }),
  parameter(
    'Rail-Request-Id',
    'The API request (`req_…`) or scheduled run (`run_…`) that caused the event; absent when nothing did, and on test events.',
    text(sampleId('req')),
  ),
  always('webhook-id', "Standard Webhooks: the event's id.", text(sampleId(prefix))),
  always('webhook-timestamp', 'Standard Webhooks: when it was signed, in Unix seconds.', text('1795253400')),
  always(
    'webhook-signature',
    'Standard Webhooks: `v1,<base64 HMAC-SHA256>`; two, separated by a space, during a rotation of the secret.',
    text('v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='),
  ),
];
