import { z } from 'zod';
import type { EmittedEvent } from '../postgres/transaction.ts';
import { sampleId, timestamp } from '../values/fields.ts';
import { anyJson, opened, override, type Schema, saidOutside } from './json_schema.ts';
import { json, type Parameter, type PathOperation, parameter } from './openapi_parts.ts';

/** A type of event, as the description needs it. */
export interface DescribedEvent {
  doc: string;
  data: z.ZodObject;
  postback: false | { omit: string[] };
  /** The fields that are null for endpoints without personal data. */
  personal: string[];
  example: object;
}

/** The terms of delivery. The numbers are those that the sender uses. */
export interface DeliveryTerms {
  /** `evt` */
  id_prefix: string;
  /** `whd` */
  delivery_prefix: string;
  /** The noun of the subject that an endpoint listens to: `program`. */
  subject: string;
  /** The owners of postbacks, the field by which an endpoint becomes one, and the events that it receives. Null: there are none. */
  postbacks: { noun: string; field: string; families: string } | null;
  /** The body, and what it holds besides id, type, created_at and data. */
  envelope(event: EmittedEvent): object;
  envelope_fields: Record<string, z.ZodType>;
  /** The description of those fields. */
  envelope_doc: string;
  user_agent: string;
  /** The time that a receiver has to answer. */
  timeout_ms: number;
  /** The least wait before each attempt but the first. */
  waits_s: number[];
  /** Only https addresses are taken. */
  https_only: boolean;
  /** True if webhooks name the request that caused their event. */
  names_requests: boolean;
  /** True if all events are listed, and deliveries replayed in bulk. */
  lists_all: boolean;
  /** The number of an endpoint's newest deliveries that its log shows; null: all that are kept. */
  most_in_log: number | null;
  /** Minutes of the hour at which retries that are due are made; none: every minute. */
  sweep_minutes: number[];
  /** The time for which a secret still signs after a rotation. */
  overlap_ms: number;
  /** The retention of events and deliveries, which is how far back they can be replayed. */
  kept_days: number;
  most_endpoints: number;
  most_postbacks: number;
  /** The rule that disables a failing endpoint. */
  switch_off: { least_failures: number; within_days: number; span_days: number };
}

/** `SaleCreatedEvent` of `sale.created`. */
export const eventName = (type: string): string =>
  `${type.replaceAll(/(^|[._])([a-z])/g, (_, __, letter: string) => letter.toUpperCase())}Event`;

/** The whole body of an event of the type. */
export function envelopeSchema(type: string, event: DescribedEvent, terms: DeliveryTerms): Schema {
  const { doc } = event;
  const known: Record<string, z.ZodType> = {
    id: z
      .string()
      .describe(
        `\`${terms.id_prefix}_…\`. Use it to ignore duplicates. The id of a test event begins with \`evt_test_\`.`,
      ),
    type: z.literal(type).describe('What happened.'),
    created_at: timestamp.describe('When it happened. ISO 8601, UTC.'),
    data: asReceived(event).describe('The data of the event. Its fields depend on the type.'),
    ...terms.envelope_fields,
  };
  const fields = Object.keys(exampleEnvelope(type, event, terms, '')).map((name) => [name, known[name]]);
  const envelope = z.object(Object.fromEntries(fields));
  const { $schema: _, ...schema } = z.toJSONSchema(envelope, { override, unrepresentable: 'any' });
  return { ...opened(saidOutside(anyJson(schema) as Schema)), description: doc };
}

/** One schema describes what all endpoints receive: what is personal can be null, and what postbacks do not see need not be there. */
function asReceived({ data, postback, personal }: DescribedEvent): z.ZodObject {
  const omitted = postback === false ? [] : postback.omit;
  const changed = [...personal, ...omitted].map((name) => {
    const field = data.shape[name] as z.ZodType;
    const withheld = personal.includes(name) ? orWithheld(field) : field;
    return [name, omitted.includes(name) ? withheld.optional() : withheld];
  });
  return data.extend(Object.fromEntries(changed));
}

const orWithheld = (field: z.ZodType): z.ZodType =>
  (field.safeParse(null).success ? field : field.nullable()).describe(
    `${field.description ?? ''} Null for an endpoint without personal data.`.trim(),
  );

/** The request that an endpoint receives for an event of the type. */
export function webhook(
  type: string,
  event: DescribedEvent,
  terms: DeliveryTerms,
  created_at: string,
): { post: PathOperation } {
  const { doc, postback } = event;
  return {
    post: {
      operationId: `events.${type}`,
      summary: type,
      description: [doc, ...postbackText(event, terms)].join('\n\n'),
      'x-postback': postback !== false,
      security: [],
      parameters: webhookHeaders(type, terms),
      requestBody: {
        required: true,
        content: {
          [json]: {
            schema: { $ref: `#/components/schemas/${eventName(type)}` },
            example: exampleEnvelope(type, event, terms, created_at),
          },
        },
      },
      responses: {
        '2XX': {
          description: `The delivery is acknowledged, if the response comes within ${terms.timeout_ms / 1000} seconds.`,
        },
        default: {
          description:
            'The attempt failed, and is retried on the schedule of retries. This includes redirects and timeouts.',
        },
      },
    },
  };
}

/** Describes whether postbacks receive it, where there are any. */
function postbackText({ postback }: DescribedEvent, { postbacks }: DeliveryTerms): string[] {
  if (!postbacks) return [];
  const who = `${postbacks.noun.charAt(0).toUpperCase()}${postbacks.noun.slice(1)} postbacks`;
  if (postback === false) return [`${who} do not receive it.`];
  const without = postback.omit.map((name) => `\`${name}\``).join(', ');
  return [`${who} receive it${without ? `, without ${without}` : ''}.`];
}

const exampleEnvelope = (
  type: string,
  { example: data }: DescribedEvent,
  { id_prefix, envelope }: DeliveryTerms,
  created_at: string,
) =>
  envelope({
    ...{ id: sampleId(id_prefix), type, created_at, data, livemode: true },
    request_id: sampleId('req'),
  });

const text = (example: string): Schema => ({ type: 'string', examples: [example] });
const always = (name: string, description: string, schema: Schema): Parameter => ({
  ...parameter(name, description, schema),
  required: true,
});

const request_header = parameter(
  'Rail-Request-Id',
  'The API request (`req_…`) or scheduled run (`run_…`) that caused the event; absent on test events and if nothing did.',
  text(sampleId('req')),
);
const hmac = '0123456789abcdef'.repeat(4);
const webhookHeaders = (
  type: string,
  { id_prefix, delivery_prefix, waits_s, user_agent, names_requests }: DeliveryTerms,
): Parameter[] => [
  always('User-Agent', 'The sender.', { type: 'string', const: user_agent }),
  always(
    'Rail-Signature',
    'Proves that the service sent this body: see "Verifying a webhook". It has two `v1` during a rotation of the secret.',
    text(`t=1795253400,v1=${hmac}`),
  ),
  always('Rail-Event', "The event's type, as `type` in the body.", { type: 'string', const: type }),
  always(
    'Rail-Event-Id',
    "The event's id, as `id` in the body: the same on every retry and replay. Use it to ignore duplicates.",
    text(sampleId(id_prefix)),
  ),
  always(
    'Rail-Delivery-Id',
    'The id of the delivery, as in the delivery log. A replay has a new id.',
    text(sampleId(delivery_prefix)),
  ),
  always('Rail-Attempt', 'The number of the attempt, starting with 1.', {
    type: 'integer',
    minimum: 1,
    maximum: waits_s.length + 1,
    examples: [1],
  }),
  ...(names_requests ? [request_header] : []),
  always('webhook-id', "Standard Webhooks: the event's id.", text(sampleId(id_prefix))),
  always('webhook-timestamp', 'Standard Webhooks: when it was signed, in Unix seconds.', text('1795253400')),
  always(
    'webhook-signature',
    'Standard Webhooks: `v1,<base64 HMAC-SHA256>`; two, separated by a space, during a rotation of the secret.',
    text('v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='),
  ),
];
