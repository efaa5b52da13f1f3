/** Resolves the hosts that webhooks are sent to, to public addresses. */
import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { AddressRefused, bareHost, isPublicAddress, NOT_PUBLIC } from './address.ts';

/** `nameServers` as `Resolver.setServers` takes them; those of /etc/resolv.conf when left out. `timeoutMs` bounds the whole resolution. */
export type ResolveOptions = {
  allowPrivate: boolean;
  /** Addresses of a name that need not be public. */
  trustedAddresses?: readonly string[] | undefined;
  nameServers?: readonly string[] | undefined;
  signal?: AbortSignal;
  timeoutMs?: number;
};

/** The endpoint's host name has no address, or none came in time. The message may be shown to the merchant, the cause may not. */
export class NameNotResolved extends Error {
  override readonly name = 'NameNotResolved';
  readonly code = 'name_not_resolved';
  constructor(options?: ErrorOptions) {
    super(NOT_PUBLIC, options);
  }
}

const RESOLVE_TIMEOUT_MS = 4_000;
const QUERY_TIMEOUT_MS = 1_000;
const QUERY_TRIES = 2;

/**
 * Every address of a host, A records before AAAA records, all of them public unless `allowPrivate`. Takes a name or an address literal,
 * as `URL.hostname` has it. Connect to these addresses: a second query may give others.
 *
 * @throws AddressRefused when one of the addresses is not public.
 * @throws NameNotResolved when there is none, or none came within `timeoutMs`.
 * @throws the reason of `signal` once that is aborted.
 */
export async function resolvePublicAddresses(hostname: string, options: ResolveOptions): Promise<LookupAddress[]> {
  const host = bareHost(hostname);
  const family = isIP(host);
  const addresses = family === 0 ? await resolveName(host, options) : [{ address: host, family }];
  const trusted = family === 0 ? options.trustedAddresses : [];
  const isAllowed = ({ address }: LookupAddress) => isPublicAddress(address) || trusted?.includes(address);
  if (!options.allowPrivate && !addresses.every(isAllowed)) throw new AddressRefused();
  return addresses;
}

async function resolveName(name: string, options: ResolveOptions): Promise<LookupAddress[]> {
  const { allowPrivate, nameServers, signal, timeoutMs = RESOLVE_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  const limit = AbortSignal.timeout(timeoutMs);
  const bounds = signal ? AbortSignal.any([signal, limit]) : limit;
  const failures: unknown[] = [];
  for (const ask of allowPrivate ? sourcesForDevelopment(name) : [askDns]) {
    const answers = await ask(name, bounds, nameServers);
    signal?.throwIfAborted();
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    failures.push(...answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : [])));
  }
  throw new NameNotResolved({ cause: new AggregateError(failures, `no address for ${name}`) });
}

type Answers = PromiseSettledResult<LookupAddress[]>[];

/**
 * Not by `dns.lookup`, which has four threads: four name servers that do not answer would block all deliveries. A resolver to each name (20 µs), because it
 * can be cancelled, and because a malformed answer fails whatever else its resolver is waiting for. Two queries, since many name servers
 * do not answer for AAAA, and that must not cost a name its A records.
 */
async function askDns(name: string, bounds: AbortSignal, nameServers?: readonly string[]): Promise<Answers> {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
  if (nameServers) resolver.setServers(nameServers);
  const cancel = () => resolver.cancel();
  bounds.addEventListener('abort', cancel, { once: true });
  const answers = await Promise.allSettled([
    resolver.resolve4(name).then((addresses) => addresses.map((address) => ({ address, family: 4 }))),
    resolver.resolve6(name).then((addresses) => addresses.map((address) => ({ address, family: 6 }))),
  ]);
  bounds.removeEventListener('abort', cancel);
  return answers;
}

function askSystem(name: string): Promise<Answers> {
  return Promise.allSettled([lookup(name, { all: true, order: 'ipv4first' })]);
}

/** /etc/hosts is for development only: there, names such as `localhost` are not in DNS. */
function sourcesForDevelopment(name: string): (typeof askDns)[] {
  const isLocal = !name.includes('.') || name.endsWith('.localhost');
  return isLocal ? [askSystem, askDns] : [askDns, askSystem];
}
