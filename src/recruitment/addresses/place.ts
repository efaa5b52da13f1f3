import { isOfHouse, registrableDomain } from '../pages/key.ts';
import { domainOf, mailboxOf } from './address.ts';
import type { PageKind } from './contact_pages.ts';
import type { Manner } from './find.ts';
import { isFree } from './verify.ts';

const mailboxes = ['person', 'business', 'general', 'other'] as const;
type Mailbox = ReturnType<typeof mailboxOf>;

/** Returns whether an address is at the registrable domain of a site. */
export const isAt = (email: string, domain: string | undefined): boolean =>
  domain !== undefined && registrableDomain(domainOf(email)) === domain;

/** The place where an address was seen. */
interface Sight {
  url: string;
  /** The platform, if its owner shares the site with others. */
  platform: string | undefined;
  kind: PageKind;
  manner: Manner;
}

/** Mailboxes of makers, hosts and sellers of websites and domains. */
const of_makers = /^(?:webmaster|hostmaster|admin|administrator|sales|hosting|domains?|noc|registrar|server)$/;
const says_how_to_reach = new Set<PageKind>(['contact', 'advertise', 'media_kit', 'imprint']);

/**
 * Returns whether an address may be the page's owner's. Those of the platform are not, but for people's on a homepage at the house that
 * they belong to; and a mailbox for something else at a firm of another name is theirs only where a page that says how to reach them links
 * to it.
 */
export function isOfOwner(email: string, { url, platform, kind, manner }: Sight): boolean {
  const domain = domainOf(email);
  const at = registrableDomain(domain) ?? domain;
  if (isFree(domain)) return true;
  if (at === platform) return isOfHouse(url) && mailboxOf(email) === 'person';
  if (at === registrableDomain(url)) return true;
  const is_for_else = mailboxOf(email) === 'other' || of_makers.test(email.slice(0, email.lastIndexOf('@')));
  if (!is_for_else || isOneName(at, url)) return true;
  return says_how_to_reach.has(kind) && manner === 'mailto';
}

/** `jane-bakes.com` and `janebakes.co`, `janebakes-media.com`. */
function isOneName(domain: string, url: string): boolean {
  const plain = (text: string) => (text.split('.')[0] ?? '').replaceAll('-', '');
  const names = [plain(domain), plain(registrableDomain(url) ?? '')];
  const [short = '', long = ''] = names.toSorted((one, other) => one.length - other.length);
  return short.length >= 4 && long.includes(short);
}

/** The lower, the better: the site's own domain, then free providers, then others; people before mailboxes of many. */
export function placeOf(email: string, is_own_domain: boolean, mailbox: Mailbox = mailboxOf(email)): number {
  // An address at a free provider is the owner's rather than that of somebody who is only named.
  const domain = is_own_domain ? 0 : isFree(domainOf(email)) ? 1 : 2;
  return domain * mailboxes.length + mailboxes.indexOf(mailbox);
}
