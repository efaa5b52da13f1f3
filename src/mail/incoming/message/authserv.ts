import { getDomain } from 'tldts';

/**
 * The names under which providers sign their results of authentication, by the domain of the IMAP host. Each writes them on top of every incoming
 * mail. An empty name: the provider signs with none.
 */
const names_of: Record<string, string[]> = {
  'gmail.com': ['google.com'],
  'googlemail.com': ['google.com'],
  'office365.com': [''],
  'outlook.com': [''],
  'hotmail.com': [''],
  'live.com': [''],
  'yahoo.com': ['yahoo.com'],
  'aol.com': ['yahoo.com'],
  'fastmail.com': ['messagingengine.com'],
  'icloud.com': ['icloud.com'],
  'me.com': ['icloud.com'],
  'mac.com': ['icloud.com'],
  'gmx.net': ['gmx.net'],
  'gmx.com': ['gmx.net'],
  'ionos.com': ['kundenserver.de'],
  'ionos.de': ['kundenserver.de'],
  'yandex.com': ['yandex.net'],
  'yandex.ru': ['yandex.net'],
  'zoho.com': ['zohomail.com'],
  'zoho.eu': ['zohomail.eu'],
  'zoho.in': ['zohomail.in'],
};

/** The server whose results of authentication are the inbox's own. */
export interface OwnServer {
  /** The host that its mail is read at. */
  imap_host: string;
  /** The domain of its address, and the hosts of its servers. */
  hosts: readonly string[];
  /** The name that its server signs with, where somebody said so. */
  authserv_id: string | null;
}

/** The names that the own server may sign with. `is_known`: it does, on top of every mail; else anybody can have written what is signed so. */
export function authservNames({ imap_host, hosts, authserv_id }: OwnServer): { names: string[]; is_known: boolean } {
  if (authserv_id !== null) return { names: [authserv_id.toLowerCase()], is_known: true };
  const of_provider = names_of[organizationOf(imap_host)];
  if (of_provider) return { names: of_provider, is_known: true };
  return { names: hosts.map(organizationOf), is_known: false };
}

/** Returns whether a name is one of these, or a host below it. */
export function isOneOf(authserv_id: string, names: readonly string[]): boolean {
  const name = withoutDot(authserv_id);
  return names.some((own) => name === own || (own !== '' && name.endsWith(`.${own}`)));
}

const withoutDot = (host: string): string => host.toLowerCase().replace(/\.$/, '');

const organizationOf = (host: string): string => {
  const name = withoutDot(host);
  return getDomain(name, { allowPrivateDomains: true }) ?? name;
};
