/** The credentials that an organization asks search providers with: `GET|PUT|DELETE /recruitment/v1/search_providers/{name}`. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { DeletedMarker, deletedMarker } from '../../core/resource/deleted_marker.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { base_path } from '../events/base_path.ts';
import { type Credentials, ProviderFailure, type ProviderName, provider_names } from './provider.ts';
import { accessWith, dispatcherFor } from './provider_access.ts';
import { configurable, providers } from './providers.ts';

declareUnique('search_provider', { provider_credential_unique: null });

/** Less than a request waits for its answer. */
const check_ms = 8_000;
const path = `${base_path}/search_providers/{name}`;

const SearchProvider = z
  .object({
    object: objectName('search_provider'),
    name: z
      .enum(provider_names)
      .describe(`The provider. ${provider_names.map((name) => `\`${name}\`: ${providers[name].doc}.`).join(' ')}`),
    configured_by: z
      .enum(['organization', 'operator'])
      .nullable()
      .describe('Whose credentials searches use. Null if the provider is not set up, or needs no credentials.'),
    hint: text
      .nullable()
      .describe(
        'The last four characters of the key, or the host of the instance. Null if not set by the organization.',
      ),
    warnings: z.array(text).describe('What was noticed when the credentials were tested.'),
    page_price_micros: z.int().describe('What a page of results costs, in millionths of a US dollar.'),
    page_units: z
      .int()
      .nullable()
      .describe("The units of the key's daily quota that a page takes. Null if there is no such quota."),
    updated_at: timestamp.nullable().describe('When the organization last set the credentials. Null if it has not.'),
  })
  .meta({
    id: 'SearchProvider',
    description: 'A provider that searches ask. Credentials are encrypted and never returned.',
  });
type SearchProvider = z.infer<typeof SearchProvider>;

const anyName = z.strictObject({ name: z.enum(provider_names).describe('The provider.') });
/** Refuses the others: nobody sets credentials for them. */
const configurableName = z.strictObject({
  name: z.enum(configurable as [ProviderName, ...ProviderName[]]).describe('The provider.'),
});

const fields_doc = configurable
  .map((name) => {
    const shape = Object.entries(providers[name].credentials?.shape ?? {});
    const fields = shape.map(
      ([field, schema]) =>
        `\`${field}\`${schema.safeParse(undefined).success ? ' (optional)' : ''}: ${(schema as z.ZodType).description}`,
    );
    return `- \`${name}\`: ${fields.join(' ')}`;
  })
  .join('\n');

export const searchProviderOperations: Operation[] = [
  operation({
    name: 'search_providers.list',
    title: 'List search providers',
    method: 'GET',
    path: `${base_path}/search_providers`,
    scope: 'searches:read',
    summary: 'Lists the providers that searches can ask.',
    doc: 'The list has one page.',
    reply: z.object({
      data: z.array(SearchProvider).describe('All providers.'),
      has_more: z.literal(false).describe('Always false.'),
      total_count: z.int().describe('How many providers there are.'),
    }),
    async run({ tx, services }) {
      const data = await Promise.all(provider_names.map((name) => recordOf(tx, name, services)));
      return { data, has_more: false as const, total_count: data.length };
    },
  }),
  operation({
    name: 'search_providers.get',
    title: 'Retrieve a search provider',
    method: 'GET',
    path,
    scope: 'searches:read',
    summary: 'Retrieves a search provider, without its credentials.',
    params: anyName,
    reply: SearchProvider,
    run: ({ tx, params, services }) => recordOf(tx, params.name, services),
  }),
  operation({
    name: 'search_providers.put',
    title: 'Set the credentials of a search provider',
    method: 'PUT',
    path,
    scope: 'searches:write',
    summary: "Sets the organization's credentials for a search provider. They are tested first.",
    doc: `Credentials that the provider refuses are not stored: 400 \`invalid_parameter\`. If the provider does not answer, the response is 503 and nothing is stored. They replace the operator's, if there are any.

The fields of \`credentials\`, by provider:

${fields_doc}`,
    params: configurableName,
    body: z.strictObject({
      credentials: z.record(text, z.union([text, z.int()])).meta({
        description:
          'The fields depend on the provider, as described above. They are tested, encrypted and never returned.',
        examples: [{ api_key: 'BSA0a1b2c3d4' }],
      }),
    }),
    reply: SearchProvider,
    async ask({ params: { name }, body, services }) {
      const credentials = parse(name, body.credentials);
      return { credentials, warnings: await tryCredentials(name, credentials, services) };
    },
    async run({ tx, params: { name }, asked, services }) {
      await put(tx, name, asked, services);
      return recordOf(tx, name, services);
    },
  }),
  operation({
    name: 'search_providers.delete',
    title: 'Delete the credentials of a search provider',
    method: 'DELETE',
    path,
    scope: 'searches:write',
    summary: "Deletes the organization's credentials of a search provider.",
    doc: "Searches use the operator's from then on, if there are any.",
    params: configurableName,
    reply: DeletedMarker,
    async run({ tx, params: { name } }) {
      const deleted = await tx.maybe<{ id: string }>(sql`
        delete from recruitment.provider_credential t where ${tenant(tx)} and t.provider = ${name} returning t.id`);
      if (deleted) return deletedMarker('search_provider', deleted.id);
      throw new Problem('resource_not_found', `The organization has no credentials for ${name}.`, { param: 'name' });
    },
  }),
];

async function recordOf(tx: Tx, name: ProviderName, { search_credentials }: Services): Promise<SearchProvider> {
  const own = await tx.maybe<Pick<SearchProvider, 'hint' | 'warnings' | 'updated_at'>>(sql`
    select t.hint, t.warnings, t.updated_at
    from recruitment.provider_credential t
    where ${tenant(tx)} and t.provider = ${name}`);
  const shared = search_credentials[name] === undefined ? null : ('operator' as const);
  const { price, units = null } = providers[name];
  return {
    ...{ object: 'search_provider', name, configured_by: own ? 'organization' : shared },
    ...(own ?? { hint: null, warnings: [], updated_at: null }),
    ...{ page_price_micros: price, page_units: units },
  };
}

/** @throws Problem for the first invalid field, as `credentials.<field>` */
function parse(name: ProviderName, credentials: Record<string, string | number>): Credentials {
  const { data, error } = (providers[name].credentials as z.ZodObject).safeParse(credentials);
  if (data) return data as Credentials;
  const issues = error.issues.map((issue) => ({ ...issue, path: ['credentials', ...issue.path] }));
  throw validationProblem({ issues }, 'body', { credentials });
}

/** @throws Problem invalid_parameter; service_unavailable */
async function tryCredentials(name: ProviderName, credentials: Credentials, services: Services): Promise<string[]> {
  const access = accessWith(name, credentials, 'organization', services);
  const dispatcher = await dispatcherFor(access, services);
  const cut_off = AbortSignal.timeout(check_ms);
  return providers[name].check({ ...access, dispatcher, cut_off, timeout_ms: check_ms }).then(
    ({ warnings }) => warnings,
    (error: unknown) => {
      if (!(error instanceof ProviderFailure)) throw error;
      return warningOf(name, error);
    },
  );
}

/** A key whose quota is used up is a good one. */
function warningOf(name: ProviderName, { kind, message }: ProviderFailure): string[] {
  if (kind === 'quota_exhausted' || kind === 'rate_limited') return [message];
  if (kind === 'refused' || kind === 'invalid') {
    throw new Problem('invalid_parameter', message, { param: 'credentials' });
  }
  const { title, url } = providers[name];
  const said = url === null ? message.replace(title, `The ${title} instance at the given URL`) : message;
  const remedy = url === null ? 'Check the URL, or retry later.' : 'Retry later.';
  throw new Problem('service_unavailable', `${said} Nothing was stored. ${remedy}`, {
    headers: { 'Retry-After': '5' },
  });
}

async function put(
  tx: Tx,
  provider: ProviderName,
  { credentials, warnings }: { credentials: Credentials; warnings: string[] },
  { vault }: Services,
): Promise<void> {
  const id = newId('fpc');
  const hint = credentials.url === undefined ? (credentials.api_key ?? '').slice(-4) : new URL(credentials.url).host;
  // One change of a provider at a time: the later one takes the place of the other.
  await tx.all(
    sql`select pg_advisory_xact_lock(hashtextextended(${`search provider ${tx.organization_id} ${provider}`}, 0))`,
  );
  await tx.all(sql`
    delete from recruitment.provider_credential t where ${tenant(tx)} and t.provider = ${provider}`);
  await insert(tx, 'recruitment.provider_credential', {
    ...{ id, provider, hint, warnings, credentials: vault.encrypt(JSON.stringify(credentials), id) },
    ...{ created_at: tx.now, updated_at: tx.now },
  });
}
