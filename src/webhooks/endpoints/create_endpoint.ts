import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import type { Services } from '../../core/resource/services.ts';
import { id, sampleId, text } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type EndpointType, type EventPolicy, planErrors, subjectNoun } from '../events/policy.ts';
import { isChat } from '../queue/chat.ts';
import { requireChatAddress, requirePublic, requirePublicHost, urlOf } from './address.ts';
import { addressValues, endpointsOf, eventTypesOf, withSecretOf } from './endpoint.ts';
import { requirePostback } from './postback.ts';
import { newSecret } from './secret.ts';

export const most_endpoints = 50;
/** Postbacks of a partner, who adds them in the portal: they take no room from the endpoints of the program. */
export const most_postbacks = 3;

export function createEndpointOperation(policy: EventPolicy): Operation {
  const { subject, owner } = policy;
  const endpoints = endpointsOf(policy);
  return operation({
    name: 'webhook_endpoints.create',
    method: 'POST',
    path: '/v1/webhook_endpoints',
    scope: 'webhooks:write',
    summary: 'Creates a webhook endpoint: a URL that receives events.',
    doc: `A key with this scope alone can have all events sent to it, with the personal data in them: give it only to who may see that. Set \`personal_data\` to \`false\` for a receiver that should not get personal data. Store the \`secret\` of the response: it is not shown again. The host must resolve to public addresses only. Private, loopback, link-local and internal addresses are refused, both here and at every delivery.${policy.endpoint_types ? ' A test key always creates an endpoint of the type `test`.' : ''}`,
    body: z.strictObject({
      ...((subject ? { [subject.field]: id(subject.prefix) } : {}) as Record<never, z.ZodType>),
      ...typeInput(policy),
      url: urlOf(policy),
      description: text.max(500).nullable().optional(),
      event_types: eventTypesOf(policy).default([]).describe('The event types to send. Empty: all types.'),
      personal_data: z
        .boolean()
        .default(true)
        .describe(
          '`false`: the endpoint receives null in the fields with personal data, such as `email`, and `hidden` in place of an email address in any other text or URL. It cannot be changed later.',
        ),
      ...ownerInput(policy),
    }),
    example: {
      ...(subject ? { [subject.field]: sampleId(subject.prefix) } : {}),
      url: 'https://hooks.example.com/rail',
      description: 'Billing',
    },
    reply: withSecretOf(policy),
    status: 201,
    ask: ({ body, services }) => requirePublicHost(body.url, services, policy),
    errors: ['address_not_allowed', 'plan_limit_reached', ...planErrors(policy)],
    test_keys: true,
    async run({ tx, body, services, caller }) {
      await policy.requireIncluded?.(tx);
      const {
        url: address,
        description,
        event_types,
        personal_data,
        ...references
      } = body as typeof body & Record<string, string>;
      const type =
        policy.endpoint_types && caller.mode === 'test' ? 'test' : (references.type as EndpointType | undefined);
      const subject_id = subject ? (references[subject.field] as string) : tx.organization_id;
      const owner_id = owner ? references[owner.field] : undefined;
      await subject?.resource.get(tx, subject_id, { param: subject.field, lock: true });
      if (owner_id !== undefined) await requirePostback(tx, policy, { owner_id, subject_id, event_types });
      const fields = { subject_id, owner_id, type, url: address, description, event_types, personal_data };
      const { id: endpoint_id, secret } = await createEndpoint(tx, services, policy, fields);
      return { ...(await endpoints.get(tx, endpoint_id)), secret };
    },
  });
}

const typeInput = ({ endpoint_types }: EventPolicy): Record<never, z.ZodType> => {
  if (!endpoint_types) return {};
  const meaning =
    '`live` receives what happens, `test` the events of tests alone. `slack`, `discord` and `teams` take the address of an incoming webhook of that tool, and receive each event as a short message.';
  return { type: z.enum(endpoint_types).default(endpoint_types[0]).describe(meaning) };
};

const ownerInput = ({ owner }: EventPolicy): Record<never, z.ZodType> => {
  if (!owner) return {};
  const noun = owner.resource.object.replaceAll('_', ' ');
  return {
    [owner.field]: id(owner.prefix)
      .optional()
      .describe(`Makes the endpoint the postback of this ${noun}, which receives only the ${noun}'s own events.`),
  };
};

interface NewEndpoint {
  subject_id: string;
  owner_id?: string | undefined;
  url: string;
  description?: string | null | undefined;
  event_types?: string[] | undefined;
  personal_data?: boolean;
  type?: EndpointType | undefined;
}

/**
 * Registers an endpoint with a new secret, which only this answer holds in the clear; a team chat has none. The caller holds the subject's row lock.
 * @throws Problem address_not_allowed, plan_limit_reached
 */
export async function createEndpoint(
  tx: Tx,
  services: Services,
  policy: EventPolicy,
  { subject_id, owner_id, type = 'live', url: address, ...fields }: NewEndpoint,
): Promise<{ id: string; secret: string | null }> {
  requirePublic(address, services, policy);
  requireChatAddress(type, address, services);
  await requireRoom(tx, policy, { subject_id, owner_id });
  const endpoint_id = newId(policy.endpoint_prefix);
  const secret = isChat(type) ? null : newSecret();
  await endpointsOf(policy).insert(tx, {
    ...fields,
    id: endpoint_id,
    type,
    livemode: type !== 'test',
    program_id: subject_id,
    partner_id: owner_id,
    https_only: policy.https_only,
    ...addressValues(type, endpoint_id, address, services),
    ...(secret === null ? {} : { secret: services.vault.encrypt(secret, endpoint_id) }),
  });
  await insert(tx, 'webhooks.endpoint_queue', { endpoint_id });
  return { id: endpoint_id, secret };
}

/** "At most 50 per program": counted under the program's row lock, and those of each partner by themselves, so that no partner leaves others without room. */
async function requireRoom(
  tx: Tx,
  policy: EventPolicy,
  { subject_id, owner_id }: Pick<NewEndpoint, 'subject_id' | 'owner_id'>,
): Promise<void> {
  const { from, alive } = endpointsOf(policy);
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*) as count from ${from}
    where t.organization_id = ${tx.organization_id} and t.program_id = ${subject_id} and coalesce(t.partner_id, '') = ${owner_id ?? ''} and ${alive}`);
  const [most, of] = owner_id === undefined ? [most_endpoints, policy.subject] : [most_postbacks, policy.owner];
  if (count < most) return;
  const noun = of?.resource.object.replaceAll('_', ' ') ?? subjectNoun(policy);
  const message = `${/^[aeiou]/.test(noun) ? 'An' : 'A'} ${noun} has at most ${most} webhook endpoints. Delete one first.`;
  throw new Problem('plan_limit_reached', message, of ? { param: of.field } : {});
}
