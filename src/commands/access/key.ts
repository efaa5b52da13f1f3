import {
  type ApiKey,
  createKey,
  type KeyChanges,
  listKeys,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../core/access/api_key.ts';
import { choose } from '../chosen.ts';
import { answer, namingOptions, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';

interface NewKeyOptions {
  organization?: string;
  name: string;
  mode: 'live' | 'test';
  scope?: string[];
  rateLimit?: number;
  user?: string;
  expiresAt?: string;
  ip?: string[];
  json?: boolean;
}

export async function createApiKey(options: NewKeyOptions): Promise<void> {
  const scopes = await requireScopes(options.scope ?? ['*']);
  await withStore(async (opened) => {
    const { id: organization_id } = await choose(opened, 'organization', options.organization);
    const creating = createKey(opened.store.database, {
      organization_id,
      name: options.name,
      mode: options.mode,
      scopes,
      rate_limit: options.rateLimit,
      user_id: options.user,
      expires_at: options.expiresAt,
      ip_ranges: options.ip,
    });
    const key = await withFutureExpiry(creating);
    const owner = key.user_id === null ? key.organization_id : `${key.user_id} of ${key.organization_id}`;
    const summary = `Created ${key.id} for ${owner} (${key.mode}, scopes ${key.scopes.join(' ')}).`;
    answer(key, { json: options.json, lines: [summary, 'The key, shown this once:', '', key.secret] });
  });
}

/** @throws UsageError for an expiry that is over */
const withFutureExpiry = <T>(work: Promise<T>): Promise<T> =>
  namingOptions(['expires_at'], work, " 'npx --no rail key revoke' does that.");

/** The operations are loaded here, since only scopes that are given need them. @throws UsageError of a scope that does not exist */
async function requireScopes(wanted: string[]): Promise<string[]> {
  const scopes = new Set((await import('../../operations.ts')).scopes);
  const unknown = wanted.filter((scope) => !scopes.has(scope));
  if (unknown.length > 0) throw new UsageError(`Unknown scope ${unknown.join(', ')}. Known: ${[...scopes].join(' ')}`);
  return [...new Set(wanted)];
}

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
      'EXPIRES AT',
      'NETWORKS',
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
  key.status,
  key.rate_limit,
  signatureOf(key),
  key.last_used_at ?? 'never',
  key.expires_at ?? 'never',
  key.ip_ranges?.join(' ') ?? 'all',
  key.scopes.join(' '),
];

const signatureOf = ({ signature_required }: ApiKey): string => (signature_required ? 'required' : 'optional');

const unknown_key = (id: string): Error => new Error(`There is no key '${id}': 'npx --no rail key list' shows them.`);

export const revokeApiKey = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const revoked = await revokeKey(store.database, id);
    if (!revoked) throw unknown_key(id);
    answer(revoked, { json, lines: [`Revoked ${revoked.id} (${revoked.name}): it is refused from now on.`] });
  });

interface RotateOptions {
  overlapHours: number;
  json?: boolean;
}

export const rotateApiKey = (id: string, { overlapHours, json }: RotateOptions): Promise<void> =>
  withStore(async ({ store }) => {
    const key = await rotateKey(store.database, id, overlapHours);
    if (!key) throw new Error(`There is no key '${id}' that is not revoked: 'npx --no rail key list' shows them.`);
    const summary = `Rotated ${key.id} (${key.name}). The key before is valid until ${key.previous_secret_expires_at}.`;
    answer(key, { json, lines: [summary, 'The new key, shown this once:', '', key.secret] });
  });

interface UpdateOptions {
  name?: string;
  scope?: string[];
  expiresAt?: string;
  expires?: false;
  ip?: string[];
  anyIp?: true;
  signature?: 'required' | 'optional';
  json?: boolean;
}

/** @throws UsageError where nothing is to be changed */
export async function updateApiKey(id: string, options: UpdateOptions): Promise<void> {
  const changes = definedOf({
    name: options.name,
    scopes: options.scope && (await requireScopes(options.scope)),
    expires_at: options.expires === false ? null : options.expiresAt,
    ip_ranges: options.anyIp ? null : options.ip,
    signature_required: options.signature && options.signature === 'required',
  });
  if (Object.keys(changes).length === 0) throw new UsageError('Say what to change. Example: --signature optional.');
  await withStore(async ({ store }) => {
    const key = await withFutureExpiry(updateKey(store.database, id, changes));
    if (!key) throw unknown_key(id);
    const { expires_at, ip_ranges } = key;
    const terms = [
      `scopes ${key.scopes.join(' ')}`,
      `expires ${expires_at ?? 'never'}`,
      `networks ${ip_ranges?.join(' ') ?? 'all'}`,
      `signature ${signatureOf(key)}`,
    ];
    answer(key, { json: options.json, lines: [`Updated ${key.id} (${key.name}): ${terms.join(', ')}.`] });
  });
}

const definedOf = (changes: KeyChanges): KeyChanges =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
