/**
 * The credentials and connections by which a provider is asked, and its daily quota.
 *
 * - The organization's own credentials come before the operator's. A SearXNG instance that an organization names must be at a public address, checked at each
 *   call; the operator's may be private.
 * - A daily quota belongs to a key, whoever has it: it is counted by the key's hash, for days of Pacific Time, before each page. Where the provider says
 *   that nothing is left, nothing is asked until the next day.
 */

import { createHash } from 'node:crypto';
import sql from 'sql-template-tag';
import type { Dispatcher } from 'undici';
import { service_opening } from '../../core/jobs/task.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import type { Credentials, ProviderName } from './provider.ts';
import { configurable, providers } from './providers.ts';

interface ProviderAccess {
  credentials: Credentials;
  url: string;
  /** The organization named the host: only public addresses are called. */
  must_be_public: boolean;
}

type Agents = Record<'plain' | 'checking', Dispatcher>;
const agents = new WeakMap<Services, Promise<Agents>>();

/** The agents that calls are made through: one pair of agents for a process, which keep connections between calls. Loaded with the first call. */
export async function dispatcherFor({ must_be_public }: ProviderAccess, services: Services): Promise<Dispatcher> {
  const opened = agents.get(services) ?? openAgents(services);
  agents.set(services, opened);
  const { plain, checking } = await opened;
  return must_be_public ? checking : plain;
}

async function openAgents(services: Services): Promise<Agents> {
  const { allow_private_addresses: allowPrivate, own_hosts: ownHosts, name_servers: nameServers } = services;
  const [{ Agent }, { createPinnedAgent }] = await Promise.all([import('undici'), import('../../core/net/agent.ts')]);
  return {
    plain: new Agent({ connect: { timeout: 8_000 }, connections: 16, pipelining: 1, allowH2: false }),
    checking: createPinnedAgent({ allowPrivate, ownHosts, ...(nameServers ? { nameServers } : {}) }),
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
    must_be_public: own_url === null && owner === 'organization',
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

/** The key that a daily quota is counted by, whoever of the organizations has it. */
const keyHash = (name: ProviderName, { api_key = '' }: Credentials): Buffer =>
  createHash('sha256').update(`${name} ${api_key}`).digest();

const default_daily_quota = 10_000;

/** The day of Google's quotas, which "reset at midnight Pacific Time (PT)". */
const pacificDay = (now: Date): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone: 'America/Los_Angeles', dateStyle: 'short' }).format(now);

/** Spends units of a daily quota, by a transaction of the service: a key's quota is shared by all who have the key. @returns false where too little is left */
export async function spendUnits(
  store: Store,
  name: ProviderName,
  credentials: Credentials,
  units: number,
): Promise<boolean> {
  const limit = Number(credentials.daily_quota ?? default_daily_quota);
  const hash = keyHash(name, credentials);
  return transaction(store, service_opening, async (tx) => {
    const day = pacificDay(new Date(tx.now));
    await tx.all(sql`
      insert into recruitment.provider_quota (key_hash, day, used) values (${hash}, ${day}::date, 0) on conflict do nothing`);
    const spent = await tx.maybe(sql`
      update recruitment.provider_quota t
      set used = t.used + ${units}
      where t.key_hash = ${hash} and t.day = ${day}::date and t.used + ${units} <= ${limit}::bigint
      returning t.used`);
    return spent !== undefined;
  });
}

/** Writes down what the provider itself says: nothing is left of the key's quota today, because something else uses the key too. */
export async function markUsedUp(store: Store, name: ProviderName, credentials: Credentials): Promise<void> {
  const limit = Number(credentials.daily_quota ?? default_daily_quota);
  await transaction(store, service_opening, (tx) =>
    tx.all(sql`
      insert into recruitment.provider_quota as t (key_hash, day, used)
      values (${keyHash(name, credentials)}, ${pacificDay(new Date(tx.now))}::date, ${limit}::bigint)
      on conflict (key_hash, day) do update set used = greatest(t.used, excluded.used)`),
  );
}
