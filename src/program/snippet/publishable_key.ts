import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { z } from 'zod';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, oneLine, sampleId, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { program_id } from '../events/fields.ts';
import { type Program, programs } from '../programs/program.ts';
import { snippetOf } from './snippet_tag.ts';

/** The values of `Sec-Fetch-Site` that say how a page reached the service, by what the record calls them. */
export const setups = { 'same-origin': 'first_party', 'same-site': 'same_site', 'cross-site': 'third_party' } as const;

export const publishableKeys = resource({
  object: 'publishable_key',
  plural: 'publishable_keys',
  listed_as: 'publishable keys',
  table: 'program.publishable_key',
  unique: { publishable_key_unique: null },
  doc: 'A key that stands in the pages of a website. It records clicks and leads from the origins that it names, and opens nothing else: no read, no sale and no amount.',
  fields: {
    id: id('pub'),
    object: objectName('publishable_key'),
    program_id,
    name: text.describe('The name of the key.'),
    mode: z
      .enum(['live', 'test'])
      .describe('`live` or `test`: the key begins with `rail_pk_live_` or `rail_pk_test_`.'),
    key: text.describe('The key. It is public.'),
    allowed_origins: z
      .array(text)
      .describe('The origins whose pages may use the key, as in `https://acme.example.com`.'),
    setup: z
      .enum(Object.values(setups) as [string, ...string[]])
      .nullable()
      .describe(
        "How the page that used the key last reached the service: `first_party` (the page's own origin, by a reverse proxy: browsers keep the cookie for the program's `cookie_days`), `same_site` (another host of the same domain), `third_party` (another domain: Safari keeps the cookie for 7 days at most). Null: never used, or by a browser that does not say.",
      ),
    last_used_at: timestamp.nullable().describe('When the key was last used, to the minute. Null: never.'),
    revoked_at: timestamp.nullable().describe('When it was revoked. Null: it was not.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type PublishableKey = z.infer<typeof publishableKeys.record>;

/** Kept as a browser sends it: in lower case, without a default port and a path. */
const origin = z
  .string()
  .max(255)
  .refine(isOrigin, 'must be an origin without a path, such as https://acme.example.com')
  .overwrite((given) => (isOrigin(given) ? new URL(given).origin : given));

function isOrigin(given: string): boolean {
  const url = /^https?:\/\/[^/?#@\\\s*]+\/?$/i.test(given) ? URL.parse(given) : null;
  return url !== null && url.pathname === '/';
}

const allowed_origins = z
  .array(origin)
  .min(1)
  .max(50)
  .overwrite((given) => [...new Set(given)])
  .describe(
    'The origins whose pages may use the key: scheme, host and port, each exactly. A subdomain is another origin.',
  );

const name = oneLine(200).describe('The name of the key.');

const WithSecret = z
  .object({
    ...publishableKeys.record.shape,
    signing_secret: text.describe(
      'The secret by which your server signs leads. It is shown this once: store it on your server, and never in a page.',
    ),
    snippet: text.describe('The script element to put into your pages.'),
  })
  .meta({ id: 'PublishableKeyWithSecret', description: 'A publishable key, with the secret that signs leads.' });

export const publishableKeyOperations: Operation[] = [
  ...readOperations({ resource: publishableKeys, within: programs, by: ['mode'] }),
  operation({
    name: 'publishable_keys.create',
    method: 'POST',
    path: '/v1/publishable_keys',
    scope: 'publishable_keys:write',
    summary: 'Creates a publishable key, for the pages of a website.',
    doc: 'The reply has the script element for your pages, and the secret by which your server signs leads. `/docs/snippet` explains both.',
    body: z.strictObject({
      program_id,
      name: name.default('Website'),
      allowed_origins,
      mode: z.enum(['live', 'test']).optional().describe('The mode. If omitted, that of the key of the request.'),
    }),
    example: { program_id: sampleId('prg'), allowed_origins: ['https://acme.example.com'] },
    reply: WithSecret,
    status: 201,
    async run({ tx, body, caller, services }) {
      const program = await programs.get(tx, body.program_id, { param: 'program_id' });
      const mode = body.mode ?? caller.mode;
      const key = `rail_pk_${mode}_${randomBytes(24).toString('base64url')}`;
      const signing_secret = `rail_sig_${randomBytes(32).toString('base64url')}`;
      const key_id = newId('pub');
      const made = (await publishableKeys.insert(tx, {
        ...{ id: key_id, program_id: program.id, name: body.name, mode, key, allowed_origins: body.allowed_origins },
        signing_secret: services.vault.encrypt(signing_secret, key_id),
      })) as PublishableKey;
      return { ...made, signing_secret, snippet: snippetOf(services.base_url, key, program as Program) };
    },
  }),
  operation({
    name: 'publishable_keys.update',
    method: 'PATCH',
    path: '/v1/publishable_keys/{id}',
    scope: 'publishable_keys:write',
    summary: 'Updates the name of a publishable key, or its origins.',
    doc: 'The change applies within a second.',
    params: idParams,
    body: z.strictObject({ name, allowed_origins }).partial(),
    reply: publishableKeys.schema,
    run: ({ tx, params, body }) => publishableKeys.update(tx, params.id, body),
  }),
  operation({
    name: 'publishable_keys.revoke',
    method: 'POST',
    path: '/v1/publishable_keys/{id}/revoke',
    scope: 'publishable_keys:write',
    summary: 'Revokes a publishable key: within a second, every process refuses it.',
    doc: 'It cannot be undone. Pages that use the key go on to work, and record nothing.',
    params: idParams,
    reply: publishableKeys.schema,
    async run({ tx, params }) {
      const key = await publishableKeys.get(tx, params.id, { lock: true });
      return publishableKeys.update(tx, key.id, { revoked_at: key.revoked_at ?? tx.now });
    },
  }),
];

/** A publishable key as the requests of browsers are checked by it, with what they need of its program. */
export interface UsableKey {
  organization_id: string;
  id: string;
  program_id: string;
  mode: 'live' | 'test';
  allowed_origins: string[];
  signing_secret: Buffer;
  last_used_at: string | null;
  is_revoked: boolean;
  cookie_days: number;
  attribution: Program['attribution'];
}

/** Keys are unique over all organizations: the query names none. */
export const keyQuery = (key: string) => sql`
  select k.organization_id, k.id, k.program_id, k.mode, k.allowed_origins, k.signing_secret, k.last_used_at,
    k.revoked_at is not null as is_revoked, p.cookie_days, p.attribution
  from program.publishable_key k
  join program.program p on p.organization_id = k.organization_id and p.id = k.program_id
  where k.key = ${key}`;
