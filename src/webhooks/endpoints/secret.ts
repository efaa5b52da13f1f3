import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Caller, idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { requireState } from '../../core/values/fields.ts';
import type { EventPolicy } from '../events/policy.ts';
import { isChat } from '../queue/chat.ts';
import { endpointFor, endpointsOf, typeOf, withSecretOf } from './endpoint.ts';

/** "Rotating gives a new secret at once and keeps the old one signing for 24 hours." */
export const overlap_ms = 86_400_000;

/** `whsec_` and 32 random bytes in plain base64, which every Standard Webhooks library decodes. */
export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

export const rotateSecretOperation = (policy: EventPolicy): Operation =>
  operation({
    name: 'webhook_endpoints.rotate_secret',
    method: 'POST',
    path: '/v1/webhook_endpoints/{id}/rotate_secret',
    scope: 'webhooks:write',
    summary: `Creates a new signing secret. Deliveries are signed with the old secret too for ${overlap_ms / 3_600_000} hours.`,
    doc: 'During this time each signature header has two entries, that of the new secret first. If you rotate again, the older secret stops at once: at most two secrets are valid. A key with this scope alone can have all events sent to its own receiver and check them with the secret, with the personal data in them unless `personal_data` of the endpoint is `false`.',
    params: idParams,
    reply: withSecretOf(policy),
    test_keys: true,
    ...(policy.chatText ? { errors: ['invalid_state_transition'] } : {}),
    run: ({ tx, params, services, caller }) => rotateSecret({ tx, caller }, services, policy, params.id),
  });

/** The old secret signs on beside the new one, in place of one that did so already. */
async function rotateSecret(
  { tx, caller }: { tx: Tx; caller: Caller },
  { vault }: Services,
  policy: EventPolicy,
  endpoint_id: string,
) {
  const endpoints = endpointsOf(policy);
  const endpoint = await endpointFor({ tx, caller }, policy, endpoint_id, { lock: true });
  requireState(!isChat(typeOf(endpoint)), 'A team chat has no signing secret. Change its `url` instead.');
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
