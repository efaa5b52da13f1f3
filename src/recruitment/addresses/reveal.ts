/** The ladder of a reveal: from a site to the addresses that its owner shows. */
import { isLostOnPlatform, platformOf, registrableDomain } from '../pages/key.ts';
import type { VisitedPage } from '../pages/page.ts';
import { failureOf, type Visit, visit } from '../pages/visit.ts';
import type { Visitor } from '../pages/visitor.ts';
import { mailboxOf } from './address.ts';
import { type PageKind, page_kinds } from './contact_pages.ts';
import type { Contacts } from './contacts.ts';
import type { Manner } from './find.ts';
import { isAt, isOfOwner, placeOf } from './place.ts';
import { type Verification, verifyAddress } from './verify.ts';

/** An address, where and when it was found, and what is known of it. */
export interface RevealedAddress {
  email: string;
  source_url: string;
  /** ISO 8601, UTC. */
  found_at: string;
  page_kind: PageKind;
  manner: Manner;
  mailbox: ReturnType<typeof mailboxOf>;
  /** True if the address is at the site's own registrable domain. */
  is_own_domain: boolean;
  verification: Verification;
}

export interface Reveal {
  /** The outcome of visiting the home page. Nothing else is visited if it is no page or cannot be read. */
  home: Visit['outcome'] | 'unreadable';
  /** The reason why there is nothing to read, as a sentence. Null: there is. */
  reason: string | null;
  /** The best one first. */
  addresses: RevealedAddress[];
  /** Every page that was visited, in order. */
  visited: { url: string; kind: PageKind; outcome: Visit['outcome'] }[];
}

export interface RevealOptions {
  visitor: Visitor;
  /** Reads a page. Undefined: it cannot be read. */
  read(page: VisitedPage): Promise<Contacts | undefined>;
  nameServers?: readonly string[] | undefined;
  /** The time, as ISO 8601. */
  now: () => string;
  signal?: AbortSignal | undefined;
}

const most_addresses = 20;
const no_account = 'The address of the account leads to a page of the site that it shares with others.';

/**
 * Visits a site's home page and up to five pages of it that say how to reach its owner, and gives the addresses there: those of the site's own
 * domain first, people before mailboxes of many, then by the kind of page. Takes a URL, or a host, which is asked by https first.
 * @throws the signal's reason once that is aborted
 */
export async function revealAddresses(site: string, options: RevealOptions): Promise<Reveal> {
  const home = await visitHome(site, options);
  const visited: Reveal['visited'] = [{ url: home.url, kind: 'home', outcome: home.outcome }];
  if (home.outcome !== 'page') return { home: home.outcome, reason: failureOf(home), addresses: [], visited };
  if (isLostOnPlatform(site, home.url)) return { home: 'page', reason: no_account, addresses: [], visited };
  const contacts = await options.read(home);
  if (!contacts) return { home: 'unreadable', reason: 'The website cannot be read.', addresses: [], visited };
  if (contacts.reason !== undefined) return { home: 'page', reason: contacts.reason, addresses: [], visited };
  const pages: Seen[] = [{ page: home, contacts, kind: 'home' }];
  for (const { url, kind, is_guessed } of contacts.pages) {
    const page = await visit(url, options.visitor, options.signal);
    options.signal?.throwIfAborted();
    visited.push({ url: page.url, kind, outcome: page.outcome });
    // A missing page often leads back to the home page.
    if (page.outcome !== 'page' || pages.some((seen) => seen.page.url === page.url)) continue;
    if (isLostOnPlatform(url, page.url)) continue;
    const there = await options.read(page);
    if (there) pages.push({ page, contacts: there, kind, is_guessed });
  }
  const found = new Map<string, RevealedAddress>();
  for (const seen of pages.filter((one) => isThere(one, pages))) collect(found, seen, options);
  return { home: 'page', reason: null, addresses: await verified(rank([...found.values()]), options), visited };
}

interface Seen {
  page: VisitedPage;
  contacts: Contacts;
  kind: PageKind;
  is_guessed?: boolean | undefined;
}

/** A server may say 200 of pages that it does not have: it then says so in words, or the same of whatever is asked for. */
function isThere({ page, contacts, kind, is_guessed }: Seen, pages: Seen[]): boolean {
  if (kind === 'home') return true;
  if (is_guessed && pages.some((other) => other.page !== page && other.page.text === page.text)) return false;
  return contacts.reason === undefined;
}

async function visitHome(site: string, { visitor, signal }: RevealOptions): Promise<Visit> {
  signal?.throwIfAborted();
  if (/^https?:\/\//i.test(site)) return visit(site, visitor, signal);
  const secure = await visit(`https://${site}/`, visitor, signal);
  signal?.throwIfAborted();
  const is_refused = secure.outcome === 'unreachable' && (secure.reason === 'connection' || secure.reason === 'tls');
  return is_refused ? visit(`http://${site}/`, visitor, signal) : secure;
}

function collect(found: Map<string, RevealedAddress>, { page, contacts, kind }: Seen, { now }: RevealOptions): void {
  const platform = platformOf(page.url);
  const own = platform === undefined ? registrableDomain(page.url) : undefined;
  for (const { email, manner } of contacts.addresses) {
    if (!isOfOwner(email, { url: page.url, platform, kind, manner })) continue;
    const known = found.get(email);
    if (known && page_kinds.indexOf(known.page_kind) <= page_kinds.indexOf(kind)) continue;
    found.set(email, {
      ...{ email, source_url: page.url, found_at: now(), page_kind: kind, manner, mailbox: mailboxOf(email) },
      ...{ is_own_domain: isAt(email, own), verification: 'unknown' },
    });
  }
}

/** The best one first. What is equal keeps its order. */
export const rank = (addresses: RevealedAddress[]): RevealedAddress[] =>
  addresses.toSorted(
    (a, b) =>
      placeOf(a.email, a.is_own_domain, a.mailbox) - placeOf(b.email, b.is_own_domain, b.mailbox) ||
      page_kinds.indexOf(a.page_kind) - page_kinds.indexOf(b.page_kind),
  );

/** Verifies addresses, and moves those that cannot be mailed to the end. */
async function verified(
  addresses: RevealedAddress[],
  { nameServers, signal }: RevealOptions,
): Promise<RevealedAddress[]> {
  const checked = await Promise.all(
    addresses.slice(0, most_addresses).map(async (address) => ({
      ...address,
      verification: await verifyAddress(address.email, { nameServers, signal }),
    })),
  );
  return checked.toSorted((a, b) => Number(isDead(a)) - Number(isDead(b)));
}

/** Returns whether an address cannot be mailed, or not for long. */
export const isDead = ({ verification }: Pick<RevealedAddress, 'verification'>): boolean =>
  verification === 'invalid' || verification === 'disposable';
