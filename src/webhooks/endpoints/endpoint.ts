import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { AddressRefused, checkEndpointUrl, NameNotResolved, resolvePublicAddresses } from '../../core/net/address.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { DeletedMarker, idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { type AnyResource, resource, tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { id, objectName, sampleId, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Catalogue } from '../events/catalogue.ts';
import type { EventPolicy as WebhookPolicy } from '../events/event.ts';

const statuses = ['enabled', 'disabled'] as const;
export const most_per_program = 50;
const url = text.min(1).max(2048).describe('A public http or https address.');
/** "Rotating gives a new secret at once and keeps the old one signing for 24 hours." */
export const overlap_ms = 86_400_000;
/** How long a host may take to resolve when it is saved. */
const resolve_ms = 3_000;

export const endpoints = resource({
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
    url: text.describe('Where events are sent to.'),
    description: text.nullable().describe('Your note. Null: none.'),
    event_types: z.array(text).describe('Empty: all.'),
    status: z.enum(statuses).describe('`disabled`: nothing is sent, until it is enabled.'),
    disabled_reason: text
      .nullable()
      .describe('Why it is off: `disabled_by_hand`, or that its events failed for too long. Null while it is on.'),
    secret_last_rotated_at: timestamp.nullable().describe('When the secret was last rotated. Null: never.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Endpoint = z.infer<typeof endpoints.record>;

const WithSecret = z.object({ ...endpoints.record.shape, secret: text.describe('`whsec_…`, shown this once.') }).meta({
  id: 'WebhookEndpointWithSecret',
  description: 'An endpoint with its signing secret, which is shown this once.',
});

export interface EndpointPolicy {
  policy: WebhookPolicy;
  /** What endpoints belong to, and whose postbacks they can be. */
  program: AnyResource;
  partner: AnyResource;
}

const example = {
  program_id: sampleId('prg'),
  url: 'https://hooks.example.com/rail',
  description: 'Billing',
};

/** The operations on endpoints, for a product's catalogue. */
export function endpointOperations({ policy, program, partner }: EndpointPolicy): Operation[] {
  const { catalogue } = policy;
  const eventTypes = z.array(z.enum(Object.keys(catalogue) as [string, ...string[]])).max(100);
  return [
    ...readOperations({ resource: endpoints, within: program, by: ['status', 'partner_id'] }).map(underWebhooksScope),
    operation({
      name: 'webhook_endpoints.create',
      method: 'POST',
      path: '/v1/webhook_endpoints',
      scope: 'webhooks:write',
      summary: 'Registers an address that receives events.',
      doc: 'The signing secret is in this answer and never again. The host must resolve to public addresses alone: private, loopback, link-local and internal ones are refused, here and at every send.',
      body: z.strictObject({
        program_id: id('prg'),
        url,
        description: text.max(500).nullable().optional(),
        event_types: eventTypes.default([]).describe('Empty: all.'),
        partner_id: id('part').optional().describe("Makes it that partner's postback."),
      }),
      example,
      reply: WithSecret,
      status: 201,
      ask: ({ body, services }) => requirePublicHost(body.url, services, policy),
      errors: ['address_not_allowed', 'plan_limit_reached'],
      async run({ tx, body, services }) {
        await program.get(tx, body.program_id, { param: 'program_id', lock: true });
        if (body.partner_id !== undefined)
          await requirePostback(tx, partner, catalogue, { ...body, partner_id: body.partner_id });
        return createEndpoint(tx, services, { ...body, https_only: policy.https_only });
      },
    }),
    operation({
      name: 'webhook_endpoints.update',
      method: 'PATCH',
      path: '/v1/webhook_endpoints/{id}',
      scope: 'webhooks:write',
      summary: "Changes an endpoint's address, description or event types.",
      doc: 'Events that stand in its sequence already go to the new address.',
      params: idParams,
      body: z.strictObject({ url, description: text.max(500).nullable(), event_types: eventTypes }).partial(),
      reply: endpoints.schema,
      async ask({ body, services }) {
        if (body.url !== undefined) await requirePublicHost(body.url, services, policy);
      },
      errors: ['address_not_allowed'],
      async run({ tx, params, body }) {
        const before = await endpoints.get(tx, params.id, { lock: true });
        if (before.partner_id !== null) requirePostbackTypes(catalogue, body.event_types ?? []);
        return endpoints.update(tx, before.id, body);
      },
    }),
    operation({
      name: 'webhook_endpoints.enable',
      method: 'POST',
      path: '/v1/webhook_endpoints/{id}/enable',
      scope: 'webhooks:write',
      summary: 'Switches an endpoint on. The count of failures restarts.',
      doc: 'It receives what happens from now on; what it missed can be replayed.',
      params: idParams,
      reply: endpoints.schema,
      async run({ tx, params }) {
        const { status } = await endpoints.get(tx, params.id, { lock: true });
        return endpoints.update(tx, params.id, {
          ...(status === 'enabled' ? {} : await fromNowOn(tx)),
          status: 'enabled',
          disabled_reason: null,
          failures_count_from: tx.now,
        });
      },
    }),
    operation({
      name: 'webhook_endpoints.disable',
      method: 'POST',
      path: '/v1/webhook_endpoints/{id}/disable',
      scope: 'webhooks:write',
      summary: 'Switches an endpoint off: nothing is sent to it, and what waits is cancelled.',
      params: idParams,
      reply: endpoints.schema,
      async run({ tx, params }) {
        const before = await endpoints.get(tx, params.id, { lock: true });
        if (before.status === 'disabled') return before;
        return endpoints.update(tx, params.id, { status: 'disabled', disabled_reason: 'disabled_by_hand' });
      },
    }),
    operation({
      name: 'webhook_endpoints.rotate_secret',
      method: 'POST',
      path: '/v1/webhook_endpoints/{id}/rotate_secret',
      scope: 'webhooks:write',
      summary: `Makes a new signing secret. The old one signs along for ${overlap_ms / 3_600_000} hours.`,
      doc: 'Until then every signature header carries two entries, the new one first. Rotating again replaces the old secret: at most two are live.',
      params: idParams,
      reply: WithSecret,
      run: ({ tx, params, services }) => rotateSecret(tx, services, params.id),
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
        const { id: endpoint_id } = await endpoints.get(tx, params.id, { lock: true });
        await endpoints.update(tx, endpoint_id, { deleted_at: tx.now });
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
  /** False: it receives the events of tests, and those alone. */
  livemode?: boolean | undefined;
  https_only?: boolean;
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
  requirePublic(fields.url, services, fields);
  const endpoint_id = newId('whe');
  const secret = newSecret();
  await requireRoom(tx, fields.program_id);
  const sealed = services.vault.encrypt(secret, endpoint_id);
  const made = (await endpoints.insert(tx, {
    ...fields,
    id: endpoint_id,
    secret: sealed,
  })) as Endpoint;
  await insert(tx, 'webhooks.lane', { endpoint_id });
  return { ...made, secret };
}

/** What was told while it was off is not told later, even where it is fanned out after this. */
const fromNowOn = (tx: Tx): Promise<{ listens_from: number }> =>
  tx.one(sql`select nextval('webhooks.event_position') as listens_from`);

/** The old secret signs on beside the new one, in place of one that did so already. */
async function rotateSecret(tx: Tx, { vault }: Services, endpoint_id: string): Promise<z.infer<typeof WithSecret>> {
  await endpoints.get(tx, endpoint_id, { lock: true });
  const { old } = await tx.one<{ old: Buffer }>(
    sql`select t.secret as old from ${endpoints.from} where ${tenant(tx)} and t.id = ${endpoint_id}`,
  );
  const secret = newSecret();
  const rotated = await endpoints.update(tx, endpoint_id, {
    secret: vault.encrypt(secret, endpoint_id),
    previous_secret: old,
    previous_secret_expires_at: new Date(Date.parse(tx.now) + overlap_ms).toISOString(),
    secret_last_rotated_at: tx.now,
    failures_count_from: tx.now,
  });
  return { ...rotated, secret };
}

/** `whsec_` and 32 random bytes in plain base64, which every Standard Webhooks library decodes. */
const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Judges the text of a URL. @throws Problem address_not_allowed */
export function requirePublic(
  url: string,
  { allow_private_addresses, own_hosts }: Services,
  { https_only }: { https_only?: boolean },
): URL {
  const judged = checkEndpointUrl(url, {
    allowPrivate: allow_private_addresses,
    ownHosts: own_hosts,
    httpsOnly: https_only === true,
  });
  if (!judged.ok) throw new Problem('address_not_allowed', judged.reason, { param: 'url' });
  return judged.url;
}

/** Judges also what the host resolves to. @throws Problem address_not_allowed */
async function requirePublicHost(url: string, services: Services, policy: WebhookPolicy): Promise<void> {
  const { hostname } = requirePublic(url, services, policy);
  if (services.allow_private_addresses) return;
  const options = { allowPrivate: false, nameServers: services.name_servers, timeoutMs: resolve_ms };
  await resolvePublicAddresses(hostname, options).catch((error) => {
    if (!(error instanceof AddressRefused || error instanceof NameNotResolved)) throw error;
    throw new Problem('address_not_allowed', error.message, { param: 'url' });
  });
}

/** "At most 50 per program": counted under the program's row lock. */
async function requireRoom(tx: Tx, program_id: string): Promise<void> {
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*) as count from ${endpoints.from} where t.organization_id = ${tx.organization_id} and t.program_id = ${program_id} and ${endpoints.alive}`);
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
  requirePostbackTypes(catalogue, fields.event_types);
}

/** @throws Problem invalid_parameter */
export function requirePostbackTypes(catalogue: Catalogue, event_types: string[], param = 'event_types'): void {
  const refused = event_types.find((type) => catalogue[type]?.postback === false);
  if (refused === undefined) return;
  throw new Problem(
    'invalid_parameter',
    `A postback cannot receive '${refused}': referral.*, commission.* and payout.* events alone.`,
    { param },
  );
}

const underWebhooksScope = (read: Operation): Operation => ({ ...read, scope: 'webhooks:read' });
