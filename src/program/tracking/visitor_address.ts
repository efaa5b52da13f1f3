import { isIPv4, SocketAddress } from 'node:net';
import type { Vault } from '../../core/encryption/vault.ts';

/**
 * The hash of a visitor's IP address, which is itself never stored. All notations of an address have one hash, and so have an IPv4 address
 * and its IPv4-mapped IPv6 form.
 */
export function hashAddress(vault: Vault, ip: string): string {
  return vault.hash(
    isIPv4(ip) ? ip : new SocketAddress({ address: ip, family: 'ipv6' }).address.replace(ipv4_mapped_prefix, ''),
  );
}

const ipv4_mapped_prefix = /^::ffff:(?=\d+\.)/;
