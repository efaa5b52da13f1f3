import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import {
  type Caller,
  type Context,
  idParams,
  type Operation,
  operation,
  readOperations,
} from '../../core/resource/operation.ts';
import { componentName, resource } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { notFound } from '../../core/values/problem.ts';
import {
  type EndpointType,
  type EventPolicy,
  ownerFields,
  ownerOf,
  perProduct,
  planErrors,
  recordsOf,
  referenceColumns,
  subjectFields,
  subjectNoun,
  withinSubject,
} from '../events/policy.ts';
import { hintOf, isChat } from '../queue/chat.ts';
import { requireChatAddress, requirePublicHost, urlOf } from './address.ts';
import { requirePostbackTypes } from './postback.ts';

const statuses = ['enabled', 'disabled'] as const;

/** The endpoints of a product. */
export const endpointsOf = perProduct((policy) => {
  const endpoints = resource({
    object: 'webhook_endpoint',
    schema_name: `${policy.namespace}webhook_endpoint`,
    plural: 'webhook_endpoints',
    table: 'webhooks.endpoint',
    doc: `An address that receives the events of ${/^[aeiou]/.test(subjectNoun(policy)) ? 'an' : 'a'} ${subjectNoun(policy)}, signed, in strict sequence.`,
    soft_delete: true,
    fields: {
      id: id(policy.endpoint_prefix),
      object: objectName('webhook_endpoint'),
      ...subjectFields(policy),
      ...ownerFields(policy, ownerMeaning(policy)),
      ...typeFields(policy),
      url: text.describe(urlMeaning(policy)),
      description: text.nullable().describe('Your note. Null: none.'),
      event_types: z.array(text).describe('The event types to send. Empty: all types.'),
      personal_data: z.boolean().describe('Whether the endpoint receives personal data. It never changes.'),
      status: z.enum(statuses).describe('`disabled`: nothing is sent, until it is enabled.'),
      disabled_reason: text
        .nullable()
        .describe(
          '`disabled_by_hand`, or a sentence that says which events failed and how to enable the endpoint. Null while it is enabled.',
        ),
      secret_last_rotated_at: timestamp.nullable().describe('When the secret was last rotated. Null: never.'),
      created_at: timestamp,
      updated_at: timestamp,
    },
    computed: referenceColumns(policy),
  });
  return recordsOf(endpoints, policy, policy.endpoint_prefix);
});

const ownerMeaning = ({ owner }: EventPolicy): string => {
  const noun = owner?.resource.object.replaceAll('_', ' ');
  return `Set: a ${noun}'s postback, which receives that ${noun}'s own events alone.`;
};

const typeFields = ({ endpoint_types }: EventPolicy): Record<never, z.ZodType> =>
  endpoint_types
    ? { type: z.enum(endpoint_types).describe('`test`: it receives test events alone. It never changes.') }
    : {};

const urlMeaning = ({ chatText }: EventPolicy): string =>
  chatText
    ? 'Where events are sent to. Of a team chat, its host and the last 4 characters: the address is a secret.'
    : 'Where events are sent to.';

export type Endpoint = z.infer<ReturnType<typeof endpointsOf>['record']>;

/** An endpoint as it is shown when it has a new secret. */
export const withSecretOf = perProduct((policy) =>
  z.object({ ...endpointsOf(policy).record.shape, secret: secretOf(policy) }).meta({
    id: componentName(`${policy.namespace}webhook_endpoint_with_secret`),
    description: 'An endpoint with its signing secret, which is shown this once.',
  }),
);

const secretOf = ({ chatText }: EventPolicy) => {
  const secret = text.describe('`whsec_…`, shown this once.');
  return chatText
    ? secret.nullable().describe('`whsec_…`, shown this once. Null: a team chat, which has none.')
    : secret;
};

/** The type of an endpoint of a product that has types. */
export const typeOf = (endpoint: object): EndpointType => (endpoint as { type?: EndpointType }).type ?? 'live';

/**
 * An endpoint as this key may use it: where endpoints have types, a test key finds those of tests alone.
 * @throws Problem resource_not_found
 */
export async function endpointFor(
  { tx, caller }: { tx: Tx; caller: Pick<Caller, 'mode'> },
  policy: EventPolicy,
  endpoint_id: string,
  options: { lock?: boolean } = {},
): Promise<Endpoint> {
  const endpoints = endpointsOf(policy);
  const endpoint = await endpoints.get(tx, endpoint_id, options);
  if (policy.endpoint_types === null || caller.mode === 'live' || typeOf(endpoint) === 'test') return endpoint;
  throw notFound(endpoints.object, endpoint_id);
}

/** Returns the columns of an endpoint's address. A team chat's address is the secret, and a hint of it is shown. */
export const addressValues = (type: string, endpoint_id: string, address: string, { vault }: Services) =>
  isChat(type) ? { url: hintOf(address), secret: vault.encrypt(address, endpoint_id) } : { url: address };

/** Types of events as callers choose them. */
export const eventTypesOf = ({ catalogue }: EventPolicy) =>
  z.array(z.enum(Object.keys(catalogue) as [string, ...string[]])).max(100);

export function readEndpointOperations(policy: EventPolicy): Operation[] {
  const reads = readOperations({
    ...withinSubject(policy),
    resource: endpointsOf(policy),
    by: ['status', ...(policy.endpoint_types ? ['type'] : []), ...(policy.owner ? [policy.owner.field] : [])],
    filters: { ...(policy.endpoint_types ? of_tests : {}), ...(policy.owner ? of_owners(policy.owner) : {}) },
  }).map((read) => ({ ...read, scope: 'webhooks:read' }));
  return policy.endpoint_types ? reads.map((read) => asEachKeyReads(policy, read)) : reads;
}

/** Tells the postbacks of owners from the other endpoints. */
const of_owners = ({ resource: { plural } }: NonNullable<EventPolicy['owner']>) => ({
  is_postback: {
    schema: z
      .enum(['true', 'false'])
      .optional()
      .describe(`Only postbacks of ${plural.replaceAll('_', ' ')} (\`true\`), or only your own endpoints (\`false\`).`),
    where: (value: string) => (value === 'true' ? sql`t.partner_id is not null` : sql`coalesce(t.partner_id, '') = ''`),
  },
});

/** Restricts a list to the endpoints that a test key sees. No caller sends it. */
const of_tests = { of_tests: { schema: z.never().optional(), where: () => sql`t.type = 'test'` } };

function asEachKeyReads(policy: EventPolicy, read: Operation): Operation {
  const asSeen = async (context: ReadContext): Promise<ReadContext> => {
    const { id: endpoint_id } = context.params as { id?: string };
    if (endpoint_id !== undefined) await endpointFor(context, policy, endpoint_id);
    return context.caller.mode === 'live'
      ? context
      : { ...context, query: { ...(context.query as object), of_tests: true } };
  };
  const { stream } = read;
  return {
    ...read,
    test_keys: true,
    query: (read.query as z.ZodObject).omit('of_tests' in (read.query as z.ZodObject).shape ? { of_tests: true } : {}),
    run: async (context) => read.run({ ...(await asSeen(context)), asked: undefined, ahead: undefined }),
    ...(stream ? { stream: async (context) => stream({ ...(await asSeen(context)), format: context.format }) } : {}),
  };
}

type ReadContext = Context<unknown, unknown, unknown>;

export function updateEndpointOperation(policy: EventPolicy): Operation {
  const endpoints = endpointsOf(policy);
  return operation({
    name: 'webhook_endpoints.update',
    method: 'PATCH',
    path: '/v1/webhook_endpoints/{id}',
    scope: 'webhooks:write',
    summary: "Changes an endpoint's address, description or event types.",
    doc: 'Events that are already queued are sent to the new address. A key with this scope alone can have all events of the endpoint sent to it, with the personal data in them unless `personal_data` is `false`.',
    params: idParams,
    body: z
      .strictObject({ url: urlOf(policy), description: text.max(500).nullable(), event_types: eventTypesOf(policy) })
      .partial(),
    reply: endpoints.schema,
    async ask({ body, services }) {
      if (body.url !== undefined) await requirePublicHost(body.url, services, policy);
    },
    errors: ['address_not_allowed'],
    test_keys: true,
    async run({ tx, caller, params, body: { url: address, ...body }, services }) {
      const before = await endpointFor({ tx, caller }, policy, params.id, { lock: true });
      if (ownerOf(policy, before) !== null) requirePostbackTypes(policy.catalogue, body.event_types ?? []);
      const type = typeOf(before);
      if (address !== undefined) requireChatAddress(type, address, services);
      const changed = address === undefined ? {} : addressValues(type, before.id, address, services);
      return endpoints.update(tx, before.id, { ...body, ...changed });
    },
  });
}

export function enableEndpointOperation(policy: EventPolicy): Operation {
  const endpoints = endpointsOf(policy);
  return operation({
    name: 'webhook_endpoints.enable',
    method: 'POST',
    path: '/v1/webhook_endpoints/{id}/enable',
    scope: 'webhooks:write',
    summary: 'Enables an endpoint, and restarts its count of failures.',
    doc: 'The endpoint receives events that happen from now on. Replay the events that it missed while it was disabled.',
    params: idParams,
    reply: endpoints.schema,
    test_keys: true,
    errors: planErrors(policy),
    async run({ tx, params, caller }) {
      await policy.requireIncluded?.(tx);
      const { status } = await endpointFor({ tx, caller }, policy, params.id, { lock: true });
      return endpoints.update(tx, params.id, {
        ...(status === 'enabled' ? {} : await fromNowOn(tx)),
        status: 'enabled',
        disabled_reason: null,
        failures_count_from: tx.now,
      });
    },
  });
}

/** Events emitted while it was disabled are not delivered later, even those that are fanned out after this, and neither is what waited before. */
const fromNowOn = (tx: Tx): Promise<{ listens_from: number; cancelled_until: number }> =>
  tx.one(
    sql`select nextval('webhooks.event_position') as listens_from, nextval('webhooks.queue_position') as cancelled_until`,
  );

export function disableEndpointOperation(policy: EventPolicy): Operation {
  const endpoints = endpointsOf(policy);
  return operation({
    name: 'webhook_endpoints.disable',
    method: 'POST',
    path: '/v1/webhook_endpoints/{id}/disable',
    scope: 'webhooks:write',
    summary:
      'Disables an endpoint. Nothing more is sent to it, and pending deliveries are cancelled, at the latest when their next attempt would be due.',
    params: idParams,
    reply: endpoints.schema,
    test_keys: true,
    async run({ tx, params, caller }) {
      const before = await endpointFor({ tx, caller }, policy, params.id, { lock: true });
      if (before.status === 'disabled') return before;
      return endpoints.update(tx, params.id, { status: 'disabled', disabled_reason: 'disabled_by_hand' });
    },
  });
}

export function deleteEndpointOperation(policy: EventPolicy): Operation {
  const endpoints = endpointsOf(policy);
  return operation({
    name: 'webhook_endpoints.delete',
    method: 'DELETE',
    path: '/v1/webhook_endpoints/{id}',
    scope: 'webhooks:write',
    summary: 'Deletes an endpoint. Pending deliveries are cancelled.',
    params: idParams,
    reply: DeletedMarker,
    test_keys: true,
    async run({ tx, params, caller }) {
      const { id: endpoint_id } = await endpointFor({ tx, caller }, policy, params.id, { lock: true });
      await endpoints.update(tx, endpoint_id, { deleted_at: tx.now });
      return { id: endpoint_id, object: 'webhook_endpoint', deleted: true as const };
    },
  });
}
