/** Finds the address that a request comes from, where proxies stand before the service. */
import { BlockList } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { bareAddress } from '../values/texts/bare_address.ts';
import { addNetwork, familyOf } from './ip_range.ts';

/** Decides whether a proxy's word about its client is trusted: by its address, and by how many stand between it and the service. */
export type TrustedProxies = (address: string, hop: number) => boolean;

/** Nobody: what a request says of its origin is ignored. */
export const no_proxies: TrustedProxies = () => false;

/**
 * The proxies that a setting names: how many stand before the service (`1`), or their networks (`10.0.0.0/8,2001:db8::/32`).
 * @throws RangeError where it is neither, or every address, by which all visitors would choose theirs
 */
export function trustedProxies(setting: string): TrustedProxies {
  if (/^[0-9]$/.test(setting)) return (_, hop) => hop < Number(setting);
  const networks = new BlockList();
  for (const network of setting.split(',')) addNetwork(networks, network.trim());
  return (written) => {
    const address = bareAddress(written);
    return address !== undefined && networks.check(address, familyOf(address));
  };
}

/** Says, once, that requests come by a proxy that is not trusted: all who come by it count as one address. */
export function warnOfUnknownProxies(app: FastifyInstance, isTrusted: TrustedProxies): void {
  let is_said = false;
  app.addHook('onRequest', async ({ headers, socket, log }) => {
    const { remoteAddress: peer = '' } = socket;
    if (is_said || headers['x-forwarded-for'] === undefined || isTrusted(peer, 0)) return;
    is_said = true;
    log.warn(
      `A request from ${peer} has the header X-Forwarded-For, and TRUSTED_PROXIES does not name ${peer}: the header is ignored, so that all who come by it count as one address. If it is your proxy, set TRUSTED_PROXIES.`,
    );
  });
}

/** The address of whoever asks: proxies write it with a port, or a zone. What is no address is left as it is, and is that of nobody. */
export const addressOf = ({ ip }: { ip: string }): string => bareAddress(ip) ?? ip;
