import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { id, objectName, text, timestamp } from '../core/fields.ts';
import { newId } from '../core/id.ts';
import {
  DeletedMarker,
  idParams,
  type Operation,
  operation,
  readOperations,
  type Services,
} from '../core/operation.ts';
import { Problem } from '../core/problem.ts';
import { type AnyResource, resource } from '../core/resource.ts';
import type { Tx } from '../core/transaction.ts';
import { insert } from '../core/write.ts';
import { checkEndpointUrl } from './address.ts';
import type { Catalogue } from './catalogue.ts';

const statuses = ['enabled', 'disabled'] as const;
const most_per_program = 50;

export const endpoint = resource({
  object: 'webhook_endpoint',
  plural: 'webhook_endpoints',
  table: 'webhooks.endpoint',
  doc: 'An address that receives the events of a program, signed, in strict sequence.',
  soft_delete: true,
  fields: {
    id: id('whe'),
    object: objectName('webhook_endpoint'),
    program_id: id('prg'),
    partner_id: id('part')
      .nullable()
      .describe("Set: a partner's postback, which receives that partner's own events alone."),
    url: text,
    description: text.nullable(),
    event_types: z.array(text).describe('Empty: all.'),
    status: z.enum(statuses),
    disabled_reason: text.nullable(),
    secret_last_rotated_at: timestamp.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Endpoint = z.infer<typeof endpoint.record>;

const WithSecret = z.object({ ...endpoint.record.shape, secret: text.describe('`whsec_…`, shown this once.') }).meta({
  id: 'WebhookEndpointWithSecret',
  description: 'An endpoint with its signing secret, which is shown this once.',
});

export interface EndpointPolicy {
  catalogue: Catalogue;
  /** What endpoints belong to, and whose postbacks they can be. */
  program: AnyResource;
  partner: AnyResource;
}

/** The operations on endpoints, for a product's catalogue. */
export function endpointOperations({ catalogue, program, partner }: EndpointPolicy): Operation[] {
  const eventTypes = z.array(z.enum(Object.keys(catalogue) as [string, ...string[]])).max(100);
  return [
    ...readOperations({ of: endpoint, within: program, by: ['status', 'partner_id'] }).map(underWebhooksScope),
    operation({
      name: 'webhook_endpoints.create',
      method: 'POST',
      path: '/v1/webhook_endpoints',
      scope: 'webhooks:write',
      summary: 'Registers an address that receives events.',
      doc: 'The signing secret is in this answer and never again. Private, loopback, link-local and internal addresses are refused, here and at every send.',
      body: z.strictObject({
        program_id: id('prg'),
        url: text.min(1).max(2048).describe('A public http or https address.'),
        description: text.max(500).nullable().optional(),
        event_types: eventTypes.default([]).describe('Empty: all.'),
        partner_id: id('part').optional().describe("Makes it that partner's postback."),
      }),
      reply: WithSecret,
      status: 201,
      async run({ tx, body, services }) {
        await program.get(tx, body.program_id, { param: 'program_id', lock: true });
        if (body.partner_id !== undefined)
          await requirePostback(tx, partner, catalogue, { ...body, partner_id: body.partner_id });
        return createEndpoint(tx, services, body);
      },
    }),
    operation({
      name: 'webhook_endpoints.delete',
      method: 'DELETE',
      path: '/v1/webhook_endpoints/{id}',
      scope: 'webhooks:write',
      summary: 'Removes an endpoint. What was not delivered to it never will be.',
      params: idParams,
      reply: DeletedMarker,
      async run({ tx, params }) {
        const { id: endpoint_id } = await endpoint.get(tx, params.id, { lock: true });
        await endpoint.update(tx, endpoint_id, { deleted_at: tx.now });
        return { id: endpoint_id, object: 'webhook_endpoint', deleted: true as const };
      },
    }),
  ];
}

interface NewEndpoint {
  program_id: string;
  url: string;
  description?: string | null | undefined;
  event_types?: string[] | undefined;
  partner_id?: string | undefined;
}

/**
 * Registers an endpoint with a new secret, which only this answer holds in the clear.
 * @throws Problem address_not_allowed, plan_limit_reached
 */
export async function createEndpoint(
  tx: Tx,
  services: Services,
  fields: NewEndpoint,
): Promise<z.infer<typeof WithSecret>> {
  requirePublic(fields.url, services);
  const endpoint_id = newId('whe');
  const secret = newSecret();
  await requireRoom(tx, fields.program_id);
  const sealed = services.vault.encrypt(secret, endpoint_id);
  const made = (await endpoint.insert(tx, { ...fields, id: endpoint_id, secret: sealed })) as Endpoint;
  await insert(tx, 'webhooks.lane', { endpoint_id });
  return { ...made, secret };
}

/** `whsec_` and 32 random bytes in plain base64, which every Standard Webhooks library decodes. */
const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** @throws Problem address_not_allowed */
export function requirePublic(url: string, { allow_private_addresses, own_hosts }: Services): void {
  const judged = checkEndpointUrl(url, { allowPrivate: allow_private_addresses, ownHosts: own_hosts });
  if (!judged.ok) throw new Problem('address_not_allowed', judged.reason, { param: 'url' });
}

/** "At most 50 per program": counted under the program's row lock. */
async function requireRoom(tx: Tx, program_id: string): Promise<void> {
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*) as count from ${endpoint.from} where t.organization_id = ${tx.organization_id} and t.program_id = ${program_id} and ${endpoint.alive}`);
  if (count < most_per_program) return;
  throw new Problem(
    'plan_limit_reached',
    `A program has at most ${most_per_program} webhook endpoints: delete one first.`,
    { param: 'program_id' },
  );
}

/** "A partner subscribes only to the `referral.*`, `commission.*` and `payout.*` families." */
async function requirePostback(
  tx: Tx,
  partner: AnyResource,
  catalogue: Catalogue,
  fields: { partner_id: string; program_id: string; event_types: string[] },
): Promise<void> {
  const owner = (await partner.get(tx, fields.partner_id, { param: 'partner_id' })) as { program_id: string };
  if (owner.program_id !== fields.program_id) {
    throw new Problem('resource_not_found', `No partner with the id '${fields.partner_id}' in this program.`, {
      param: 'partner_id',
    });
  }
  const refused = fields.event_types.find((type) => catalogue[type]?.postback === false);
  if (refused === undefined) return;
  throw new Problem(
    'invalid_parameter',
    `A postback cannot receive '${refused}': referral.*, commission.* and payout.* events alone.`,
    {
      param: 'event_types',
    },
  );
}

const underWebhooksScope = (read: Operation): Operation => ({ ...read, scope: 'webhooks:read' });
