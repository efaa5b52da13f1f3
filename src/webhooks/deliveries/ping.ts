import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { newId } from '../../core/values/id.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { requirePostbackTypes } from '../endpoints/postback.ts';
import { postbackBody } from '../events/event.ts';
import { type EventPolicy, ownerOf } from '../events/policy.ts';
import { append, enabledEndpoint } from './append.ts';
import { deliveriesOf } from './delivery.ts';

export const pingOperation = (policy: EventPolicy): Operation =>
  operation({
    name: 'webhook_endpoints.ping',
    title: 'Send a test event',
    method: 'POST',
    path: '/v1/webhook_endpoints/{id}/ping',
    scope: 'webhooks:write',
    summary: "Sends a test event to an endpoint: the example of an event type, signed with the endpoint's secret.",
    doc: 'The id of a test event starts with `evt_test_`. It is sent once and not retried.',
    params: idParams,
    body: z
      .strictObject({
        event_type: z
          .enum(Object.keys(policy.catalogue) as [string, ...string[]])
          .optional()
          .describe(
            'The event type to send an example of. A postback can only receive the types for postbacks. The default is the first type that the endpoint receives.',
          ),
      })
      .default({}),
    reply: deliveriesOf(policy).schema,
    errors: ['endpoint_disabled'],
    async run({ tx, params, body }) {
      const to = await enabledEndpoint(tx, policy, params.id);
      const event_type = body.event_type ?? to.event_types[0] ?? firstTypeFor(to, policy);
      if (ownerOf(policy, to) !== null) requirePostbackTypes(policy.catalogue, [event_type], 'event_type');
      const event_id = newId('evt').replace('evt_', 'evt_test_');
      const request_body = testBody(tx, policy, to, { id: event_id, type: event_type });
      return append(tx, policy, to, { event_id, event_type, replay_of: null, request_body });
    },
  });

/** The first of the catalogue that an endpoint may receive. */
function firstTypeFor(endpoint: Endpoint, policy: EventPolicy): string {
  const is_postback = ownerOf(policy, endpoint) !== null;
  const { catalogue } = policy;
  return Object.keys(catalogue).find((type) => !is_postback || catalogue[type]?.postback !== false) as string;
}

/** The catalogue's example of a type, as the endpoint would receive it. */
function testBody(
  { now: created_at }: Tx,
  policy: EventPolicy,
  endpoint: Endpoint,
  { id, type }: { id: string; type: string },
): string | null {
  const data = policy.catalogue[type]?.example as object;
  const event = { id, type, created_at, data, request_id: undefined, livemode: false };
  return ownerOf(policy, endpoint) === null ? JSON.stringify(policy.envelope(event)) : postbackBody(policy, event);
}
