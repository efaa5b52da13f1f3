import { AddressRefused, checkEndpointUrl } from '../../core/net/address.ts';
import { NameNotResolved, resolvePublicAddresses } from '../../core/net/resolve.ts';
import type { Services } from '../../core/resource/services.ts';
import { asParsed, text } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import type { EventPolicy } from '../events/policy.ts';
import { isChat, isChatAddress } from '../queue/chat.ts';

/** The time in which a host must resolve when an endpoint is saved. */
const resolve_ms = 3_000;

/** Kept as it was parsed, so that what is stored is what was checked. */
export const urlOf = ({ https_only, chatText }: EventPolicy) =>
  text
    .min(1)
    .overwrite(asParsed)
    .max(2048)
    .describe(
      `A public ${https_only ? 'https' : 'http or https'} URL.${chatText ? ' For `slack`, `discord` and `teams`: the URL of the incoming webhook.' : ''}`,
    );

/** Checks the text of a URL. @throws Problem address_not_allowed */
export function requirePublic(
  address: string,
  { allow_private_addresses, own_hosts }: Services,
  { https_only }: EventPolicy,
): URL {
  const checked = checkEndpointUrl(address, {
    allowPrivate: allow_private_addresses,
    ownHosts: own_hosts,
    httpsOnly: https_only && !allow_private_addresses,
  });
  if (!checked.ok) throw new Problem('address_not_allowed', checked.reason, { param: 'url' });
  return checked.url;
}

/** An endpoint of a team chat is at the tool's own host, or at one that the operator allows. @throws Problem address_not_allowed */
export function requireChatAddress(type: string, address: string, services: Services): void {
  if (!isChat(type) || isChatAddress(type, new URL(address), services)) return;
  const message = `The address is not that of an incoming webhook of ${chat_names[type]}. Copy it from there.`;
  throw new Problem('address_not_allowed', message, { param: 'url' });
}

const chat_names: Record<string, string> = { slack: 'Slack', discord: 'Discord', teams: 'Microsoft Teams' };

/** Checks also what the host resolves to. @throws Problem address_not_allowed */
export async function requirePublicHost(address: string, services: Services, policy: EventPolicy): Promise<void> {
  const { hostname } = requirePublic(address, services, policy);
  if (services.allow_private_addresses) return;
  const options = { allowPrivate: false, nameServers: services.name_servers, timeoutMs: resolve_ms };
  await resolvePublicAddresses(hostname, options).catch((error) => {
    if (!(error instanceof AddressRefused || error instanceof NameNotResolved)) throw error;
    throw new Problem('address_not_allowed', error.message, { param: 'url' });
  });
}
