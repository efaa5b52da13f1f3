import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { type Endpoint, typeOf } from '../endpoints/endpoint.ts';
import { requirePostbackTypes } from '../endpoints/postback.ts';
import { newTestId, postbackBody } from '../events/event.ts';
import { replacedFields } from '../events/personal_data.ts';
import { type EventPolicy, ownerOf, planErrors } from '../events/policy.ts';
import { isChat } from '../queue/chat.ts';
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
    doc: 'The id of a test event starts with `evt_test_`. It is sent once and not retried. An endpoint without personal data receives null in its personal fields.',
    params: idParams,
    body: z
      .strictObject({
        event_type: z
          .enum(Object.keys(policy.catalogue) as [string, ...string[]])
          .optional()
          .describe(
            `The event type to send an example of.${policy.owner ? ' A postback can only receive the types for postbacks.' : ''} The default is the first type that the endpoint receives.`,
          ),
      })
      .default({}),
    reply: deliveriesOf(policy).schema,
    errors: ['endpoint_disabled', ...planErrors(policy)],
    test_keys: true,
    async run({ tx, params, body, caller }) {
      const to = await enabledEndpoint({ tx, caller }, policy, params.id);
      const event_type = body.event_type ?? to.event_types[0] ?? firstTypeFor(to, policy);
      if (ownerOf(policy, to) !== null) requirePostbackTypes(policy.catalogue, [event_type], 'event_type');
      const event_id = newTestId();
      const request_body = await testBody(tx, policy, to, { id: event_id, type: event_type });
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
async function testBody(
  tx: Tx,
  policy: EventPolicy,
  endpoint: Endpoint,
  { id, type }: { id: string; type: string },
): Promise<string | null> {
  const { now: created_at } = tx;
  const example = policy.catalogue[type]?.example as object;
  const replaced = endpoint.personal_data ? null : replacedFields(policy.catalogue, { type, data: example });
  const event = { id, type, created_at, data: { ...example, ...replaced }, request_id: undefined, livemode: false };
  if (isChat(typeOf(endpoint))) return chatBody(tx, typeOf(endpoint), `Test: ${policy.chatText?.(event)}`);
  return ownerOf(policy, endpoint) === null ? JSON.stringify(policy.envelope(event)) : postbackBody(policy, event);
}

async function chatBody(tx: Tx, type: string, line: string): Promise<string> {
  const { body } = await tx.one<{ body: string }>(sql`select webhooks.chat_body(${type}, ${line}) as body`);
  return body;
}
