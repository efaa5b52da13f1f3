import { isIPv4, SocketAddress } from 'node:net';
import type { Vault } from '../../core/encryption/vault.ts';

/**
 * What is kept of a visitor's IP address ("hashed on write, never stored"): the same for all spellings of one address, and for an IPv4
 * address that came in IPv6 clothes.
 */
export function hashAddress(vault: Vault, ip: string): string {
  return vault.hash(isIPv4(ip) ? ip : new SocketAddress({ address: ip, family: 'ipv6' }).address.replace(mapped, ''));
}

const mapped = /^::ffff:(?=\d+\.)/;
