/** Checks whether mail can reach an address, as far as DNS and lists say. */
import { Resolver } from 'node:dns/promises';
import free_providers from 'email-providers/all.json' with { type: 'json' };
import { domainOf, parseAddress } from './address.ts';

export type Verification = 'valid' | 'accept_all' | 'webmail' | 'disposable' | 'unknown' | 'invalid';

export interface VerifyOptions {
  /** The name servers for `Resolver.setServers`; those of /etc/resolv.conf when left out. */
  nameServers?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
}

const query_timeout_ms = 1_500;
const query_tries = 2;
const free_domains = new Set<string>(free_providers);

/**
 * Verifies an address without writing to it: `invalid` where the text is no address or its domain takes no mail, `disposable`, `webmail` of
 * free providers, else `unknown`: a mail exchanger alone proves no mailbox. A name server that does not answer proves nothing. `valid` and
 * `accept_all` come from providers.
 * @throws the signal's reason once that is aborted
 */
export async function verifyAddress(text: string, options: VerifyOptions = {}): Promise<Verification> {
  const email = parseAddress(text);
  if (email === undefined) return 'invalid';
  const domain = domainOf(email);
  const listed = await verificationByLists(domain);
  if (listed === 'disposable') return listed;
  return (await takesMail(domain, options)) === false ? 'invalid' : listed;
}

type Listed = 'disposable' | 'webmail' | 'unknown';

/** Looks a domain up in the lists, without a DNS query. */
export const verificationByLists = async (domain: string): Promise<Listed> => (await openLists())(domain);

/** `verificationByLists` of many. The list of disposable ones takes a megabyte, so that it is loaded with the first address. */
export async function openLists(): Promise<(domain: string) => Listed> {
  const { default: mail_checker } = await import('mailchecker');
  const disposable = mail_checker.blacklist();
  return (domain) => {
    if (isListed(disposable, domain)) return 'disposable';
    return isFree(domain) ? 'webmail' : 'unknown';
  };
}

/** Returns whether a domain is of a provider that gives mailboxes to anybody. */
export function isFree(domain: string): boolean {
  return free_domains.has(domain);
}

/** A domain, or one that it is below. */
function isListed(list: Set<string>, domain: string): boolean {
  const labels = domain.split('.');
  return labels.some((_, nth) => nth < labels.length - 1 && list.has(labels.slice(nth).join('.')));
}

/**
 * Undefined where the name servers do not say. An MX of `.` takes none (RFC 7505); without any MX the domain's own address does (RFC 5321,
 * section 5.1).
 */
async function takesMail(domain: string, { nameServers, signal }: VerifyOptions): Promise<boolean | undefined> {
  signal?.throwIfAborted();
  const resolver = new Resolver({ timeout: query_timeout_ms, tries: query_tries });
  if (nameServers) resolver.setServers(nameServers);
  const cancel = () => resolver.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    const exchangers = await answerOf(resolver.resolveMx(domain));
    if (exchangers === undefined) return undefined;
    // Node leaves the name of a null MX out, or gives it empty.
    if (exchangers !== 'none') return exchangers.some(({ exchange }) => exchange !== '' && exchange !== '.');
    const addresses = await Promise.all([answerOf(resolver.resolve4(domain)), answerOf(resolver.resolve6(domain))]);
    if (addresses.some((each) => Array.isArray(each) && each.length > 0)) return true;
    return addresses.includes(undefined) ? undefined : false;
  } finally {
    signal?.removeEventListener('abort', cancel);
    signal?.throwIfAborted();
  }
}

/** Undefined where the server failed or was silent. */
async function answerOf<T>(query: Promise<T[]>): Promise<T[] | 'none' | undefined> {
  try {
    return await query;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOTFOUND' || code === 'ENODATA' ? 'none' : undefined;
  }
}
