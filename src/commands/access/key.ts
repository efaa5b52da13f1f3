import { type ApiKey, createKey, listKeys, requireSignatures, revokeKey } from '../../core/access/api_key.ts';
import { choose } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';

interface NewKeyOptions {
  organization?: string;
  name: string;
  mode: 'live' | 'test';
  scope?: string[];
  rateLimit?: number;
  user?: string;
  json?: boolean;
}

export async function createApiKey(options: NewKeyOptions): Promise<void> {
  const wanted = options.scope ?? ['*'];
  const scopes = await readScopes();
  const unknown = wanted.filter((scope) => !scopes.has(scope));
  if (unknown.length > 0) throw new UsageError(`Unknown scope ${unknown.join(', ')}. Known: ${[...scopes].join(' ')}`);
  await withStore(async (opened) => {
    const { id: organization_id } = await choose(opened, 'organization', options.organization);
    const key = await createKey(opened.store.database, {
      organization_id,
      name: options.name,
      mode: options.mode,
      scopes: [...new Set(wanted)],
      rate_limit: options.rateLimit,
      user_id: options.user,
    });
    const owner = key.user_id === null ? key.organization_id : `${key.user_id} of ${key.organization_id}`;
    const summary = `Created ${key.id} for ${owner} (${key.mode}, scopes ${key.scopes.join(' ')}).`;
    answer(key, { json: options.json, lines: [summary, 'The key, shown this once:', '', key.secret] });
  });
}

/** Every scope there is. The operations are loaded here, since only a new key needs them. */
const readScopes = async (): Promise<Set<string>> => new Set((await import('../../operations.ts')).scopes);

export const listApiKeys = ({ organization, json }: { organization?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const keys = await listKeys(store.database, organization);
    const columns = [
      'ID',
      'ORGANIZATION',
      'USER',
      'NAME',
      'MODE',
      'STATE',
      'RATE LIMIT',
      'SIGNATURE',
      'LAST USED AT',
      'SCOPES',
    ];
    answer(keys, { json, lines: table(columns, keys.map(row), 'There is no key.') });
  });

const row = (key: ApiKey): (string | number)[] => [
  key.id,
  key.organization_id,
  key.user_id ?? '',
  key.name,
  key.mode,
  key.revoked_at ? 'revoked' : 'active',
  key.rate_limit,
  signatureOf(key),
  key.last_used_at ?? 'never',
  key.scopes.join(' '),
];

const signatureOf = ({ signature_required }: ApiKey): string => (signature_required ? 'required' : 'optional');

export const revokeApiKey = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const revoked = await revokeKey(store.database, id);
    if (!revoked) throw new Error(`There is no key '${id}': 'npx --no rail key list' shows them.`);
    answer(revoked, { json, lines: [`Revoked ${revoked.id} (${revoked.name}): it is refused from now on.`] });
  });

interface UpdateOptions {
  signature: 'required' | 'optional';
  json?: boolean;
}

export const updateApiKey = (id: string, { signature, json }: UpdateOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const key = await requireSignatures(store.database, id, signature === 'required');
    if (!key) throw new Error(`There is no key '${id}': 'npx --no rail key list' shows them.`);
    answer(key, { json, lines: [`Signatures of requests with ${key.id} (${key.name}) are ${signatureOf(key)}.`] });
  });
