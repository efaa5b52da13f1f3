import { getDomain } from 'tldts';

/**
 * How the servers of large providers sign their results, where that is not the domain of the hosts that a login names.
 * An empty name: the provider writes none.
 */
const names_of: Record<string, string[]> = {
  'gmail.com': ['google.com'],
  'googlemail.com': ['google.com'],
  'office365.com': [''],
  'outlook.com': [''],
  'hotmail.com': [''],
  'live.com': [''],
  'aol.com': ['yahoo.com'],
  'fastmail.com': ['messagingengine.com'],
  'me.com': ['icloud.com'],
  'mac.com': ['icloud.com'],
  'gmx.com': ['gmx.net'],
  'ionos.com': ['kundenserver.de'],
  'ionos.de': ['kundenserver.de'],
  'yandex.com': ['yandex.net'],
  'yandex.ru': ['yandex.net'],
  'zoho.com': ['zohomail.com'],
  'zoho.eu': ['zohomail.eu'],
  'zoho.in': ['zohomail.in'],
};

/**
 * Whether the server that wrote a result of authentication is the inbox's own: its authserv-id belongs to the domain of the inbox's address, to that of one
 * of its servers, or to the provider of these.
 */
export function isOwnAuthserv(authserv_id: string, own_hosts: readonly string[]): boolean {
  const organizations = own_hosts.map(organizationOf);
  const names = [...organizations, ...organizations.flatMap((organization) => names_of[organization] ?? [])];
  return names.includes(authserv_id === '' ? '' : organizationOf(authserv_id));
}

const organizationOf = (host: string): string => {
  const name = host.toLowerCase().replace(/\.$/, '');
  return getDomain(name, { allowPrivateDomains: true }) ?? name;
};
