/** Finds evidence that a page's owner suits a brand as an affiliate, each piece with the place where it was seen. */
import { registrableDomain } from '../pages/key.ts';
import { fold, type Link, type Page } from '../pages/page.ts';
import { namesCoupons } from './coupon_words.ts';
import { cloaked_path, hosts_without_marks, impact_host, marks, networks } from './networks.ts';

export type EvidenceKind = 'competitor_link' | 'affiliate_network' | 'coupon_page' | 'keyword';

export interface Evidence {
  kind: EvidenceKind;
  /** The link's address; of a keyword and of a coupon page, the page's. */
  url: string;
  /** The competitor's domain, the network's name, what the coupon page is called, or the keyword; then a few words of where it stands. */
  text: string;
}

/** The fields of a brand that evidence is compared with. `competitors` are domains. */
export interface Brand {
  website_url: string;
  competitors: readonly string[];
  keywords: readonly string[];
  languages: readonly string[];
  countries: readonly string[];
}

const most_of_a_kind = 20;
const most_text_characters = 200;
const around_keyword_characters = 60;

/** Returns the owner of a page: the brand's and its competitors' own pages are no prospects. */
export function ownerOf(url: string, brand: Brand): 'brand' | 'competitor' | 'other' {
  const domain = registrableDomain(url);
  if (domain !== undefined && domain === registrableDomain(brand.website_url)) return 'brand';
  return domain !== undefined && competitorsOf(brand).has(domain) ? 'competitor' : 'other';
}

/** All evidence of a page, at most 20 of a kind, in the page's order. Nothing of the brand's own pages and its competitors'. */
export function findEvidence(page: Page, brand: Brand): Evidence[] {
  if (ownerOf(page.url, brand) !== 'other') return [];
  const own = registrableDomain(page.url);
  const { inner = [], outbound = [] } = Object.groupBy(page.links, ({ url }) =>
    registrableDomain(url) === own ? 'inner' : 'outbound',
  );
  return [
    ...competitorLinks(outbound, brand),
    ...networkLinks(outbound),
    ...cloakedLinks(inner),
    ...couponPages(page, inner),
    ...keywords(page, brand),
  ];
}

/** Links to competitors, also through a network that names where it leads. */
function competitorLinks(links: Link[], brand: Brand): Evidence[] {
  const competitors = competitorsOf(brand);
  const found = links.flatMap(({ url, text }) => {
    const domain = [url, ...addressesWithin(url)]
      .map((each) => registrableDomain(each))
      .find((each) => each && competitors.has(each));
    return domain ? [evidence('competitor_link', url, domain, text)] : [];
  });
  return found.slice(0, most_of_a_kind);
}

function networkLinks(links: Link[]): Evidence[] {
  const found = links.flatMap(({ url, text }) => {
    const network = networkOf(url);
    return network ? [evidence('affiliate_network', url, network, text)] : [];
  });
  return found.slice(0, most_of_a_kind);
}

function cloakedLinks(links: Link[]): Evidence[] {
  return links
    .filter(
      ({ url, rel }) =>
        rel.some((each) => each === 'sponsored' || each === 'nofollow') && cloaked_path.test(pathOf(url)),
    )
    .slice(0, most_of_a_kind)
    .map(({ url, text }) => evidence('affiliate_network', url, 'Link of its own', text));
}

/** The page itself where its title or address says so, and pages of the same site that it links to. */
function couponPages(page: Page, inner: Link[]): Evidence[] {
  const itself = namesCoupons(page.title ?? '') || namesCoupons(wordsOfPath(page.url));
  const linked = inner
    .filter(({ url, text }) => url !== page.url && (namesCoupons(text) || namesCoupons(wordsOfPath(url))))
    .map(({ url, text }) => evidence('coupon_page', url, text || wordsOfPath(url)));
  return [...(itself ? [evidence('coupon_page', page.url, page.title ?? wordsOfPath(page.url))] : []), ...linked].slice(
    0,
    most_of_a_kind,
  );
}

/** Each keyword once, with what stands around it. */
function keywords({ url, title, description, text }: Page, brand: Brand): Evidence[] {
  const read = [title, description, text].filter((each) => each !== null).join(' · ');
  const folded = fold(read);
  const found = [...new Set(brand.keywords)].flatMap((keyword) => {
    const at = positionOf(fold(keyword).trim(), folded);
    if (at === undefined) return [];
    // Folding may change how long a text is: then the words around it are a little further.
    const around = read.slice(
      Math.max(0, at - around_keyword_characters),
      at + keyword.length + around_keyword_characters,
    );
    return [evidence('keyword', url, keyword, around)];
  });
  return found.slice(0, most_of_a_kind);
}

/** The network or the software that a link belongs to. */
export function networkOf(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return undefined;
  const rest = url.pathname + url.search;
  for (const suffix of suffixesOf(url.hostname)) {
    const found = networks_by_host.get(suffix)?.find(({ only }) => only === undefined || only.test(rest));
    if (found) return found.name;
  }
  if (impact_host.test(url.hostname)) return 'Impact';
  if (hosts_without_marks.has(registrableDomain(url.hostname) ?? '')) return undefined;
  return marks.find(({ host, query }) => (host?.test(url.hostname) ?? true) && query.test(rest))?.network;
}

const networks_by_host = Map.groupBy(
  networks.flatMap((network) => network.hosts.map((host) => ({ ...network, host }))),
  ({ host }) => host,
);

/** `a.b.com`, `b.com`, `com`. */
function suffixesOf(host: string): string[] {
  const labels = host.replace(/^www\./, '').split('.');
  return labels.map((_, nth) => labels.slice(nth).join('.')).slice(-5);
}

function competitorsOf({ competitors }: Brand): Set<string> {
  return new Set(competitors.flatMap((each) => registrableDomain(each) ?? []));
}

/** Addresses that a link carries in its query, as deep links of networks do. */
function addressesWithin(text: string): string[] {
  const url = URL.parse(text);
  if (url === null) return [];
  return [...url.searchParams.values()]
    .filter((value) => /^https?(?::|%3a)\/?/i.test(value))
    .map((value) => decode(value));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function pathOf(text: string): string {
  return URL.parse(text)?.pathname ?? '';
}

/** A path as words: `/codes-promo/mode` is "codes promo mode". */
function wordsOfPath(text: string): string {
  return decode(pathOf(text))
    .replace(/[/_.-]+/g, ' ')
    .trim();
}

/** Finds a keyword as a whole word, where the script has spaces. */
function positionOf(keyword: string, text: string): number | undefined {
  if (keyword === '') return undefined;
  const is_letter = (at: number) => at >= 0 && at < text.length && /[\p{L}\p{N}]/u.test(text[at] as string);
  const has_spaces = !/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u.test(
    keyword,
  );
  for (let at = text.indexOf(keyword); at !== -1; at = text.indexOf(keyword, at + 1)) {
    if (!has_spaces || (!is_letter(at - 1) && !is_letter(at + keyword.length))) return at;
  }
  return undefined;
}

function evidence(kind: EvidenceKind, url: string, ...texts: string[]): Evidence {
  const text = texts.filter((each) => each.trim() !== '').join(': ');
  return { kind, url, text: text.replace(/\s+/g, ' ').slice(0, most_text_characters) };
}
