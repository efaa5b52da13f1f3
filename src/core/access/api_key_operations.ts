import sql from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../encryption/vault.ts';
import { isWithin } from '../net/ip_range.ts';
import type { Tx } from '../postgres/transaction.ts';
import { type Caller, idParams, type Operation, operation, readOperations } from '../resource/operation.ts';
import { hasScope, known_scopes } from '../resource/scope.ts';
import { oneLine, requireState, text, timestampInput } from '../values/fields.ts';
import { newId } from '../values/id.ts';
import { Problem } from '../values/problem.ts';
import { apiKeys, default_rate_limit, ip_range, newSecret, requireFuture } from './api_key.ts';
import { users } from './user.ts';

type Key = z.infer<typeof apiKeys.record>;
/** The fields that decide how much a key may do. */
type Powers = Pick<Key, 'mode' | 'scopes' | 'rate_limit' | 'expires_at' | 'ip_ranges' | 'user_id'>;

const most_overlap_hours = 720;

const scope = z
  .string()
  .refine((name) => known_scopes.has(name), 'is not a scope; each operation names the one that it needs');
const scopes = z
  .array(scope)
  .min(1)
  .max(200)
  .overwrite((given) => [...new Set(given)]);
const ip_ranges = z
  .array(ip_range)
  .min(1)
  .max(50)
  .nullable()
  .describe('The networks that requests with the key may come from, in CIDR notation. Null: from everywhere.');
const expires_at = timestampInput.nullable().describe('From when on the key is refused. Null: it does not expire.');
const name = oneLine(200).describe('The name of the key.');

const WithSecret = z
  .object({ ...apiKeys.record.shape, secret: text.describe('The key. It is shown this once: store it.') })
  .meta({ id: 'ApiKeyWithSecret', description: 'An API key, with the key itself.' });

const limits =
  'A key can do so only to keys that may do no more than itself: its scopes, mode, rate limit, expiry and networks bound theirs, and the key belongs to its own user, or to nobody (403 `key_not_allowed`). The command line (`npx --no rail key`) has no such limits.';

export const apiKeyOperations: Operation[] = [
  ...readOperations({
    resource: apiKeys,
    by: ['mode', 'user_id'],
    filters: {
      status: {
        schema: (apiKeys.fields.status as z.ZodType).optional(),
        where: (value: string) => sql`(${apiKeys.computed?.status}) = ${value}`,
      },
    },
    list_doc:
      'Includes keys that were revoked or have expired, so that the ids in records and in the audit log can be resolved.',
  }),
  operation({
    name: 'api_keys.create',
    title: 'Create an API key',
    method: 'POST',
    path: '/v1/api_keys',
    scope: 'keys:write',
    summary: 'Creates an API key and returns it. It cannot be shown again.',
    doc: `${limits} What is left out is as of the key of the request: a key that expires, is bound to networks or must sign creates keys that do, too.`,
    body: z.strictObject({
      name,
      scopes: scopes.describe('What the key may do.'),
      mode: z.enum(['live', 'test']).optional().describe('The mode. If omitted, that of the key of the request.'),
      rate_limit: z
        .int()
        .min(1)
        .max(1_000_000)
        .optional()
        .describe(
          `Requests in each second. If omitted, ${default_rate_limit}, or the limit of the key of the request if that is lower.`,
        ),
      expires_at: expires_at.optional(),
      ip_ranges: ip_ranges.optional(),
      for_user: z
        .boolean()
        .default(true)
        .describe(
          'Whether the key belongs to the user of the key of the request, if that has one. `false`: it belongs to nobody.',
        ),
    }),
    reply: WithSecret,
    status: 201,
    errors: ['key_not_allowed'],
    async run({ tx, body, caller }) {
      const own = await powersOf(tx, caller);
      const wanted = {
        name: body.name,
        scopes: body.scopes,
        mode: body.mode ?? own.mode,
        rate_limit: body.rate_limit ?? Math.min(own.rate_limit, default_rate_limit),
        expires_at: body.expires_at === undefined ? own.expires_at : body.expires_at,
        ip_ranges: body.ip_ranges === undefined ? own.ip_ranges : body.ip_ranges,
        user_id: body.for_user ? own.user_id : null,
      };
      requireFuture(tx.now, body.expires_at);
      requireWithin(caller, own, wanted);
      await requireOwnerOf(tx, own, wanted);
      const secret = newSecret(wanted.mode);
      const key = await tx.one<Key>(insertion(tx, { ...wanted, signature_required: own.signature_required }, secret));
      return { ...key, secret };
    },
  }),
  operation({
    name: 'api_keys.update',
    title: 'Update an API key',
    method: 'PATCH',
    path: '/v1/api_keys/{id}',
    scope: 'keys:write',
    summary: 'Updates the name of an API key, or what restricts it: scopes, expiry and networks.',
    doc: `The change applies within a second. ${limits}`,
    params: idParams,
    body: z.strictObject({ name, scopes: scopes.describe('What the key may do.'), expires_at, ip_ranges }).partial(),
    reply: apiKeys.schema,
    errors: ['key_not_allowed', 'invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      const { own, key } = await keyToChange(tx, params.id, caller);
      requireFuture(tx.now, body.expires_at);
      const wanted = { ...key, ...(body as Partial<Powers>) };
      requireWithin(caller, own, wanted);
      await requireOwnerOf(tx, own, wanted);
      return apiKeys.update(tx, key.id, body);
    },
  }),
  operation({
    name: 'api_keys.rotate',
    title: 'Rotate an API key',
    method: 'POST',
    path: '/v1/api_keys/{id}/rotate',
    scope: 'keys:write',
    summary: 'Gives an API key a new secret and returns it. The one before stays valid for a while.',
    doc: `Id, scopes and restrictions stay. If you rotate again, the older secret stops at once: at most two are valid. ${limits}`,
    params: idParams,
    body: z.strictObject({
      overlap_hours: z
        .int()
        .min(0)
        .max(most_overlap_hours)
        .default(24)
        .describe('Hours for which the key before stays valid. 0: it is refused within a second.'),
    }),
    reply: WithSecret,
    errors: ['key_not_allowed', 'invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      const { key } = await keyToChange(tx, params.id, caller);
      const secret = newSecret(key.mode);
      const until = new Date(Date.parse(tx.now) + body.overlap_hours * 3_600_000).toISOString();
      await tx.all(sql`select core.rotate_key(${key.id}, ${sha256(secret)}, ${until}::timestamptz)`);
      return { ...(await apiKeys.get(tx, key.id)), secret };
    },
  }),
  operation({
    name: 'api_keys.revoke',
    title: 'Revoke an API key',
    method: 'POST',
    path: '/v1/api_keys/{id}/revoke',
    scope: 'keys:write',
    summary: 'Revokes an API key: within a second, every process refuses it.',
    doc: `It cannot be undone. A key may revoke itself. ${limits}`,
    params: idParams,
    reply: apiKeys.schema,
    errors: ['key_not_allowed'],
    async run({ tx, params, caller }) {
      const own = await powersOf(tx, caller);
      const key = await apiKeys.get(tx, params.id, { lock: true });
      if (key.id !== caller.api_key_id) requireWithin(caller, own, key);
      return apiKeys.update(tx, key.id, { revoked_at: key.revoked_at ?? tx.now });
    },
  }),
];

/** The scopes of the request's key, or of the person in the dashboard. */
async function powersOf(tx: Tx, caller: Caller): Promise<Powers & { signature_required: boolean }> {
  const { user_id, scopes, mode } = caller;
  if (user_id === undefined) return apiKeys.get(tx, caller.api_key_id, { lock: 'share', param: 'Authorization' });
  const unbound = { expires_at: null, ip_ranges: null, signature_required: false };
  return { user_id, scopes, mode, rate_limit: default_rate_limit, ...unbound };
}

async function keyToChange(tx: Tx, key_id: string, caller: Caller): Promise<{ own: Powers; key: Key }> {
  const key = await apiKeys.get(tx, key_id, { lock: true });
  const own = key.id === caller.api_key_id ? key : await powersOf(tx, caller);
  requireState(key.revoked_at === null, 'The API key was revoked. Create another one.');
  requireWithin(caller, own, key);
  await requireOwnerOf(tx, own, key);
  return { own, key };
}

/** A key of nobody that changes people can make owners: a user who is none would make themselves one with it. @throws Problem key_not_allowed */
async function requireOwnerOf(tx: Tx, own: Powers, key: Pick<Powers, 'user_id' | 'scopes'>): Promise<void> {
  if (own.user_id === null || key.user_id !== null || !hasScope(key.scopes, 'users:write')) return;
  if ((await users.get(tx, own.user_id)).role === 'owner') return;
  throw new Problem(
    'key_not_allowed',
    "A key of nobody with the scope 'users:write' can make owners, and you are none. Leave the scope out, or ask an owner.",
    { param: 'scopes' },
  );
}

const insertion = (
  tx: Tx,
  key: Omit<Powers, never> & { name: string; signature_required: boolean },
  secret: string,
) => sql`
  insert into core.api_key as t (
    organization_id, id, name, mode, secret_sha256, scopes, rate_limit, signature_required, user_id, expires_at, ip_ranges, created_at, updated_at
  )
  values (
    ${tx.organization_id}, ${newId('key')}, ${key.name}, ${key.mode}, ${sha256(secret)}, ${key.scopes}, ${key.rate_limit},
    ${key.signature_required}, ${key.user_id}, ${key.expires_at}, ${key.ip_ranges}, ${tx.now}, ${tx.now}
  )
  returning ${apiKeys.columns}`;

/** A key cannot give more than it has. @throws Problem key_not_allowed, `param` = what is too much */
function requireWithin(caller: Caller, own: Powers, key: Powers): void {
  const refuse = (param: string, message: string) => {
    throw new Problem('key_not_allowed', `${message} Use a key that may do as much.`, { param });
  };
  const missing = key.scopes.find((scope) => !hasScope(caller.scopes, scope));
  if (missing !== undefined) refuse('scopes', `The key of this request does not have the scope '${missing}'.`);
  if (own.mode === 'test' && key.mode === 'live') refuse('mode', 'The key of this request is a test key.');
  if (key.rate_limit > own.rate_limit)
    refuse('rate_limit', `The key of this request may make ${own.rate_limit} requests per second.`);
  if (own.expires_at !== null && (key.expires_at === null || key.expires_at > own.expires_at))
    refuse('expires_at', `The key of this request expires at ${own.expires_at}, and the other one later or never.`);
  const { ip_ranges: allowed } = own;
  if (allowed !== null && !(key.ip_ranges?.every((range) => isWithin(allowed, range)) ?? false))
    refuse('ip_ranges', 'The key of this request can be used from some networks only, and the other one from others.');
  if (key.user_id !== null && key.user_id !== own.user_id)
    refuse('user_id', 'The key belongs to a user, who is not that of the key of this request.');
}
