import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import { type Caller, type Operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { notFound } from '../../core/values/problem.ts';
import { endpointFor, endpointsOf, typeOf } from '../endpoints/endpoint.ts';
import { kept_days } from '../events/event_log.ts';
import {
  type EventPolicy,
  perProduct,
  recordsOf,
  referenceColumns,
  subjectFields,
  withinSubject,
} from '../events/policy.ts';
import { user_agent } from '../queue/send.ts';

const statuses = ['pending', 'delivered', 'failed', 'cancelled'] as const;

const result = {
  attempt: z.int().describe('1 for the first.'),
  at: timestamp,
  duration_ms: z.int().describe('How long it took, in milliseconds.'),
  status_code: z.int().nullable().describe('The HTTP status of the response. Null: no response.'),
  response_body: text.nullable().describe('The first 16 KiB of the response body. Null: no response.'),
  error: text.nullable().describe('What went wrong. Null: the attempt succeeded.'),
};

const attempt = z.object({
  ...result,
  url: text.nullable().describe('Where the request was sent to. Of a team chat, its host and the last 4 characters.'),
  request_headers: z
    .record(z.string(), z.string())
    .describe('The headers of the request, with its signatures. A team chat receives none.'),
});

/** Builds the request headers of an attempt `a` of the delivery `t`, as `headersOf` of the queue makes them. */
const requestHeaders = sql`
  json_strip_nulls(case when a.rail_signature is null
  then json_build_object('Content-Type', 'application/json', 'User-Agent', ${user_agent}::text)
  else json_build_object(
    'Content-Type', 'application/json',
    'User-Agent', ${user_agent}::text,
    'Rail-Signature', a.rail_signature,
    'Rail-Event', t.event_type,
    'Rail-Event-Id', t.event_id,
    'Rail-Delivery-Id', t.id,
    'Rail-Attempt', a.attempt::text,
    'Rail-Request-Id', (
      select v.request_id from webhooks.event v where v.organization_id = t.organization_id and v.id = t.event_id
    ),
    'webhook-id', t.event_id,
    'webhook-timestamp', floor(extract(epoch from a.at))::bigint::text,
    'webhook-signature', a.webhook_signature
  ) end)`;

/** The deliveries of a product. */
export const deliveriesOf = perProduct((policy) => {
  const deliveries = resource({
    object: 'webhook_delivery',
    schema_name: `${policy.namespace}webhook_delivery`,
    plural: 'webhook_deliveries',
    table: 'webhooks.delivery',
    doc: `The delivery of an event to an endpoint, with its attempts. Kept for ${kept_days} days.`,
    fields: {
      id: id(policy.delivery_prefix),
      object: objectName('webhook_delivery'),
      ...subjectFields(policy),
      endpoint_id: id(policy.endpoint_prefix).describe('The endpoint that the event is sent to.'),
      event_id: id(policy.id_prefix).describe(`\`${policy.id_prefix}_…\`, or \`evt_test_…\` for a test event.`),
      event_type: text.describe('The type of the event.'),
      status: z
        .enum(statuses)
        .describe(
          '`pending`: not delivered yet. `delivered`: the endpoint answered with a 2xx. `failed`: every attempt failed. `cancelled`: the endpoint was disabled or deleted first.',
        ),
      attempt: z.int().describe('The number of attempts so far, at most 8.'),
      next_attempt_at: timestamp
        .nullable()
        .describe('The earliest time of the next attempt after a failed one. Null: no retry is planned.'),
      replay_of: id(policy.delivery_prefix)
        .nullable()
        .describe('The delivery that this one replays. Null: not a replay.'),
      request_body: text.nullable().describe('The exact body that is sent.'),
      attempts: z.array(attempt).describe('The attempts and their results, oldest first.'),
      created_at: timestamp,
      updated_at: timestamp,
    },
    computed: {
      ...referenceColumns({ ...policy, owner: null }),
      request_body: sql`coalesce(t.request_body, (
        select webhooks.body_for(e, v)
        from webhooks.event v
        join webhooks.endpoint e on e.organization_id = t.organization_id and e.id = t.endpoint_id
        where v.organization_id = t.organization_id and v.id = t.event_id
      ))`,
      attempts: sql`(
        select coalesce(json_agg(json_build_object(
          'attempt', a.attempt,
          'at', to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          'duration_ms', a.duration_ms,
          'status_code', a.status_code,
          'response_body', a.response_body,
          'error', a.error,
          'url', a.url,
          'request_headers', ${requestHeaders}
        ) order by a.attempt), '[]')
        from webhooks.attempt a
        where a.organization_id = t.organization_id and a.delivery_id = t.id
      )`,
    },
  });
  return recordsOf(deliveries, policy, policy.delivery_prefix);
});

export type Delivery = z.infer<ReturnType<typeof deliveriesOf>['record']>;

const ofType = (types: [string, ...string[]]) => ({
  schema: z.enum(types).optional(),
  where: (value: string) => sql`t.event_type = ${value}`,
});

/** @param most the newest that are shown; null: all that are kept */
const newestOf = (endpoint_id: string, most: number | null): Sql =>
  most === null
    ? sql`t.endpoint_id = ${endpoint_id}`
    : sql`t.endpoint_id = ${endpoint_id} and t.id in (
        select newest.id from webhooks.delivery newest
        where newest.organization_id = t.organization_id and newest.endpoint_id = ${endpoint_id}
        order by newest.id desc
        limit ${most}
      )`;

/**
 * A delivery as this key may use it: where endpoints have types, a test key finds those to endpoints of tests alone.
 * @throws Problem resource_not_found
 */
export async function deliveryFor(
  { tx, caller }: { tx: Tx; caller: Pick<Caller, 'mode'> },
  policy: EventPolicy,
  delivery_id: string,
): Promise<Delivery> {
  const deliveries = deliveriesOf(policy);
  const delivery = await deliveries.get(tx, delivery_id);
  if (policy.endpoint_types === null || caller.mode === 'live') return delivery;
  const endpoint = await endpointsOf(policy).find(tx, sql`${tenant(tx)} and t.id = ${delivery.endpoint_id}`);
  if (endpoint && typeOf(endpoint) === 'test') return delivery;
  throw notFound(deliveries.object, delivery_id);
}

function readOne(policy: EventPolicy, read: Operation): Operation {
  const run: Operation['run'] = async (context) => {
    await deliveryFor(context, policy, (context.params as { id: string }).id);
    return read.run(context);
  };
  return { ...read, test_keys: true, run };
}

/** The delivery log: of the subject, of one delivery, of one endpoint. */
export function deliveryLogOperations(policy: EventPolicy): Operation[] {
  const deliveries = deliveriesOf(policy);
  const event_type = ofType(Object.keys(policy.catalogue) as [string, ...string[]]);
  return [
    ...readOperations({
      ...withinSubject(policy),
      resource: deliveries,
      by: ['endpoint_id', 'status'],
      filters: { event_type },
    })
      .filter(({ name }) => policy.lists_all || name.endsWith('.get'))
      .map((read) => ({ ...(read.name.endsWith('.get') ? readOne(policy, read) : read), scope: 'webhooks:read' })),
    nestedListOperation(
      {
        name: 'webhook_endpoints.deliveries',
        title: "List an endpoint's deliveries",
        path: '/v1/webhook_endpoints/{id}/deliveries',
        scope: 'webhooks:read',
        summary: `Lists the ${policy.most_in_log === null ? '' : `last ${policy.most_in_log} `}deliveries of an endpoint, newest first.`,
        test_keys: true,
      },
      {
        of: { resource: deliveries, by: ['status'], filters: { event_type } },
        parent: (context, id) => endpointFor(context, policy, id),
        where: (endpoint_id) => newestOf(endpoint_id, policy.most_in_log),
        cursor: (endpoint_id) => sql`t.endpoint_id = ${endpoint_id}`,
      },
    ),
  ];
}
