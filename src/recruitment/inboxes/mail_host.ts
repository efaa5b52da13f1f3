import { AddressRefused, isAllowedHost } from '../../core/net/address.ts';
import { NameNotResolved, resolvePublicAddresses } from '../../core/net/resolve.ts';
import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import { mail_ports, type Server } from './settings.ts';

export type Protocol = 'smtp' | 'imap';

const resolve_ms = 4_000;

/**
 * The address of a mail server, checked as the address of a webhook endpoint is. Connect to it, and verify the certificate for the host.
 * @throws Problem address_not_allowed, naming the host or the port
 */
export async function mailServerAddress(
  protocol: Protocol,
  { host, port }: Server,
  services: Services,
): Promise<string> {
  const { allow_private_addresses: allowPrivate, own_hosts: ownHosts, name_servers: nameServers } = services;
  if (!allowPrivate && !mail_ports[protocol].includes(port)) {
    throw refused(protocol, 'port', `The port must be one of ${mail_ports[protocol].join(', ')}.`);
  }
  if (!isAllowedHost(host, { allowPrivate, ownHosts })) throw refused(protocol, 'host', not_public);
  try {
    const [first] = await resolvePublicAddresses(host, { allowPrivate, nameServers, timeoutMs: resolve_ms });
    return first?.address as string;
  } catch (error) {
    if (error instanceof AddressRefused || error instanceof NameNotResolved)
      throw refused(protocol, 'host', not_public);
    throw error;
  }
}

const not_public =
  'The host could not be resolved, or does not resolve to public internet addresses only. Use a host name that has an A or AAAA record in public DNS. If the same is said of every host, the service reaches no name server.';

const refused = (protocol: Protocol, field: 'host' | 'port', message: string): Problem =>
  new Problem('address_not_allowed', message, { param: `${protocol}.${field}` });
