/**
 * Decides which addresses and URLs a webhook may be sent to, without DNS. "Endpoint URLs must be public `https://` or `http://` addresses. Private,
 * loopback, link-local or internal host names are refused when saved and again at send time" (specification, section 6).
 */
import { isIP, isIPv4 } from 'node:net';

/**
 * `allowPrivate` is for development and tests only. `ownHosts` are the names this service answers to, without ports. `trustedAddresses` are
 * addresses that names may resolve to although they are not public; in a URL itself they are refused.
 */
export type AddressPolicy = {
  allowPrivate: boolean;
  ownHosts: readonly string[];
  httpsOnly?: boolean;
  trustedAddresses?: readonly string[] | undefined;
};

export type UrlCheck = { ok: true; url: URL } | { ok: false; reason: string };

/** The same whether a name does not exist or is internal: otherwise the names of a private zone could be probed. */
export const NOT_PUBLIC =
  'The host of the URL could not be resolved, or does not resolve to public internet addresses only. Use a host name that has an A or AAAA record in public DNS. If the same is said of every host, the service reaches no name server.';

/** The endpoint is not at a public address. The message may be shown to the merchant. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
  readonly code = 'address_not_allowed';
  constructor(reason = NOT_PUBLIC) {
    super(reason);
  }
}

const MAX_URL_CHARACTERS = 2048;

const REFUSED_IPV4 = [
  '0.0.0.0/8', // "this network"
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; also metadata at Alibaba
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's host agent, on a public address
  '169.254.0.0/16', // link-local; cloud metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; metadata at Oracle
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
].map(parseBlock);

const IPV4_MAPPED = parseBlock('::ffff:0:0/96');
/** Loopback, ULA, link-local, multicast, NAT64 and v4-compatible addresses all lie outside it. */
const GLOBAL_IPV6 = parseBlock('2000::/3');
const REFUSED_IPV6 = [
  '2001::/23', // protocol assignments, Teredo among them
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: carries any IPv4 address
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
].map(parseBlock);

/** A name is refused when it is one of these or lies below one. */
const REFUSED_NAMES = [
  ...['localhost', 'local', 'internal', 'lan', 'home', 'corp', 'intranet', 'private', 'home.arpa', 'arpa'],
  ...['test', 'example', 'invalid', 'onion'],
  ...['metadata.google.internal', 'metadata.goog', 'metadata.tencentyun.com', 'metadata.packet.net'],
  ...['metadata.platformequinix.com'],
];

const PORTS_BELOW_1024 = new Set([80, 443]);
const REFUSED_PORTS = new Set([
  ...[2375, 2376, 2377], // Docker
  ...[1433, 1434, 1521, 3050, 3306, 5432, 5433, 6432, 26257, 33060, 50000], // relational databases and their poolers
  ...[2379, 2380, 5984, 6984, 7474, 7687, 8086, 8123, 8529, 9042, 9160, 9200, 9300, 27017, 27018, 27019, 28015], // other databases
  ...[6379, 6380, 11211, 16379, 26379], // caches
]);

/**
 * Returns whether an IPv4 or IPv6 address is globally routable unicast, by its bits. False for anything that is not an address, zone ids included.
 * Pass the address that a name resolved to or a URL's normalised literal, without brackets.
 */
export function isPublicAddress(address: string): boolean {
  const bits = parseAddress(address);
  if (bits === undefined) return false;
  if (isIPv4(address)) return isPublicIpv4(bits);
  if (contains(IPV4_MAPPED, bits)) return isPublicIpv4(bits & 0xffff_ffffn);
  return contains(GLOBAL_IPV6, bits) && !REFUSED_IPV6.some((block) => contains(block, bits));
}

/**
 * Checks an endpoint's URL without resolving its host: scheme, length, userinfo, port, name or address literal in every spelling. With
 * `allowPrivate` only scheme, length and userinfo are checked. Gives the parsed URL, the host's trailing dots taken off, or a sentence that
 * may be shown to the merchant.
 */
export function checkEndpointUrl(text: string, { allowPrivate, ownHosts, httpsOnly }: AddressPolicy): UrlCheck {
  if (text.length > MAX_URL_CHARACTERS) return refuse('The URL may have at most 2,048 characters. Use a shorter one.');
  const url = URL.parse(text);
  if (url === null)
    return refuse('The URL is not valid. Send it in full, for example https://hooks.your-shop.com/rail.');
  if (url.protocol !== 'https:' && (httpsOnly || url.protocol !== 'http:'))
    return refuse(`The URL must begin with https://${httpsOnly ? '' : ' or http://'}.`);
  if (url.username !== '' || url.password !== '') {
    return refuse(
      'The URL must not contain a user name or password. Verify the Rail-Signature header to authenticate webhooks.',
    );
  }
  url.hostname = url.hostname.replace(/(?<!\.)\.+$/, '');
  if (allowPrivate) return { ok: true, url };

  if (isRefusedHost(bareHost(url.hostname), ownHosts)) {
    return refuse(
      'The host of the URL must be on the public internet. Private, reserved and internal hosts are not allowed.',
    );
  }
  if (!isAllowedPort(url.port)) {
    return refuse(
      'The port of the URL is not allowed. Use 80, 443, 8443, or another port from 1024 on that is not a standard port of a database, a cache or Docker.',
    );
  }
  return { ok: true, url };
}

/** Returns whether a host's name or address literal may be connected to, as far as that is known without resolving it. */
export const isAllowedHost = (host: string, { allowPrivate, ownHosts }: AddressPolicy): boolean =>
  allowPrivate || !isRefusedHost(bareHost(host), ownHosts);

function refuse(reason: string): UrlCheck {
  return { ok: false, reason };
}

/** A host without the brackets of an IPv6 literal and without trailing dots. */
export function bareHost(hostname: string): string {
  return hostname
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/(?<!\.)\.+$/, '')
    .toLowerCase();
}

function isRefusedHost(host: string, ownHosts: readonly string[]): boolean {
  // Own hosts cover what lies below them, so that the names of a private zone cannot be probed one by one.
  if (isWithin(host, ownHosts.map(bareHost))) return true;
  if (isIP(host) !== 0) return !isPublicAddress(host);
  return !host.includes('.') || isWithin(host, REFUSED_NAMES);
}

function isWithin(host: string, names: readonly string[]): boolean {
  return names.some((name) => host === name || host.endsWith(`.${name}`));
}

/** `URL.port` is empty for the scheme's own port. */
function isAllowedPort(port: string): boolean {
  if (port === '') return true;
  const number = Number(port);
  return number < 1024 ? PORTS_BELOW_1024.has(number) : !REFUSED_PORTS.has(number);
}

/** Returns the owner of an address, as a text: itself, in IPv6 its /64. Undefined where it is not public. */
export function publicNetworkOf(address: string): string | undefined {
  const bits = isPublicAddress(address) ? parseAddress(address) : undefined;
  if (bits === undefined) return undefined;
  if (isIPv4(address)) return `4:${bits}`;
  return contains(IPV4_MAPPED, bits) ? `4:${bits & 0xffff_ffffn}` : `6:${bits >> 64n}`;
}

type Block = { first: bigint; last: bigint };

function isPublicIpv4(bits: bigint): boolean {
  return !REFUSED_IPV4.some((block) => contains(block, bits));
}

function contains(block: Block, bits: bigint): boolean {
  return block.first <= bits && bits <= block.last;
}

/** `192.168.0.0/16` or `2001:db8::/32`, the address being the first of the block. */
function parseBlock(text: string): Block {
  const [address = '', prefix] = text.split('/');
  const first = parseAddress(address);
  if (first === undefined) throw new Error(`not a block of addresses: ${text}`);
  const hostBits = BigInt((isIPv4(address) ? 32 : 128) - Number(prefix));
  return { first, last: first + (1n << hostBits) - 1n };
}

/** The bits of an address as a number, undefined for anything else. Node's parser says what is an address: no octal, no short forms. */
function parseAddress(address: string): bigint | undefined {
  const family = isIP(address);
  if (family === 0 || address.includes('%')) return undefined;
  return family === 4 ? joinGroups(address.split('.'), 10, 8n) : parseIpv6(address);
}

function parseIpv6(address: string): bigint {
  const tail = address.slice(address.lastIndexOf(':') + 1);
  if (isIPv4(tail)) {
    const bits = joinGroups(tail.split('.'), 10, 8n);
    return parseIpv6(`${address.slice(0, -tail.length)}${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`);
  }
  const [head = [], rest = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(8 - head.length - rest.length).fill('0');
  return joinGroups([...head, ...zeros, ...rest], 16, 16n);
}

function joinGroups(groups: readonly string[], radix: number, width: bigint): bigint {
  return groups.reduce((bits, group) => (bits << width) | BigInt(Number.parseInt(group, radix)), 0n);
}
