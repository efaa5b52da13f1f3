/** What a search provider is asked with: the organization's own credentials, else the operator's. */
import { createHash } from 'node:crypto';
import sql from 'sql-template-tag';
import type { Dispatcher } from 'undici';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import type { Credentials, ProviderName } from './provider.ts';
import { configurable, providers } from './providers.ts';

export interface ProviderAccess {
  credentials: Credentials;
  url: string;
  /** The organization named the host: only public addresses are called. */
  is_judged: boolean;
}

type Agents = Record<'plain' | 'judging', Dispatcher>;
const agents = new WeakMap<Services, Promise<Agents>>();

/** What calls are made through: one pair of agents for a process, which keep connections between calls. Loaded with the first call. */
export async function dispatcherFor({ is_judged }: ProviderAccess, services: Services): Promise<Dispatcher> {
  const opened = agents.get(services) ?? openAgents(services);
  agents.set(services, opened);
  const { plain, judging } = await opened;
  return is_judged ? judging : plain;
}

async function openAgents(services: Services): Promise<Agents> {
  const { allow_private_addresses: allowPrivate, own_hosts: ownHosts, name_servers: nameServers } = services;
  const [{ Agent }, { createPinnedAgent }] = await Promise.all([import('undici'), import('../../core/net/agent.ts')]);
  return {
    plain: new Agent({ connect: { timeout: 8_000 }, connections: 16, pipelining: 1, allowH2: false }),
    judging: createPinnedAgent({ allowPrivate, ownHosts, ...(nameServers ? { nameServers } : {}) }),
  };
}

/** @param owner who set the credentials */
export function accessWith(
  name: ProviderName,
  credentials: Credentials,
  owner: 'organization' | 'operator',
  services: Services,
): ProviderAccess {
  const own_url = services.provider_urls[name] ?? providers[name].url;
  return {
    credentials,
    url: own_url ?? credentials.url ?? '',
    is_judged: own_url === null && owner === 'organization',
  };
}

/** Undefined where nobody has set the provider up. */
export async function accessTo(tx: Tx, name: ProviderName, services: Services): Promise<ProviderAccess | undefined> {
  if (providers[name].credentials === null) return accessWith(name, {}, 'operator', services);
  const own = await tx.maybe<{ id: string; credentials: Buffer }>(sql`
    select t.id, t.credentials from recruitment.provider_credential t where ${tenant(tx)} and t.provider = ${name}`);
  if (own)
    return accessWith(name, JSON.parse(services.vault.decrypt(own.credentials, own.id)), 'organization', services);
  const shared = services.search_credentials[name];
  return shared && accessWith(name, shared, 'operator', services);
}

/** The providers that can be asked now. The index has something to search once a page was fetched. */
export async function availableProviders(tx: Tx, services: Services): Promise<Set<ProviderName>> {
  const own = await tx.all<{ provider: ProviderName }>(
    sql`select t.provider from recruitment.provider_credential t where ${tenant(tx)}`,
  );
  const has_pages = await tx.maybe(sql`select from recruitment.page t where ${tenant(tx)} limit 1`);
  const shared = configurable.filter((name) => services.search_credentials[name] !== undefined);
  return new Set([
    ...own.map(({ provider }) => provider),
    ...shared,
    ...(has_pages ? ['index' as const] : []),
    'url_list',
  ]);
}

/** What a daily quota is counted by: the key, whoever of the organizations has it. */
export const keyHash = (name: ProviderName, { api_key = '' }: Credentials): Buffer =>
  createHash('sha256').update(`${name} ${api_key}`).digest();
