/** One polite visit of a page. */
import { type AddressPolicy, checkEndpointUrl } from '../../core/net/address.ts';
import { retryAfterOf } from '../../core/net/answer.ts';
import { decodeText } from './charset.ts';
import { type Answer, get, TooSlow, Unreadable } from './exchange.ts';
import { registrableDomain } from './key.ts';
import type { VisitedPage } from './page.ts';
import { all_forbidden, most_robots_bytes, type RobotsRules, rulesOf } from './robots.ts';
import type { Visitor } from './visitor.ts';

/** The outcome of a visit. `url` is the final one, after redirects. */
export type Visit =
  | ({ outcome: 'page'; is_truncated: boolean; redirects: string[] } & VisitedPage)
  /** robots.txt forbids it, or cannot be had; or the server asks for a login or refuses (401, 403, 451). */
  | { outcome: 'forbidden'; url: string; by: 'robots' | 'robots_unavailable' | 'server'; status: number | null }
  | { outcome: 'http_error'; url: string; status: number; retry_after_s: number | null }
  | { outcome: 'not_html'; url: string; content_type: string | null }
  | { outcome: 'unreachable'; url: string; reason: UnreachableReason };

export type UnreachableReason =
  | 'invalid_url'
  | 'address_not_allowed'
  | 'name_not_resolved'
  | 'timeout'
  | 'connection'
  | 'tls'
  | 'malformed'
  | 'too_many_redirects'
  | 'aborted';

const failures: Record<UnreachableReason, string> = {
  invalid_url: 'The address of the website is not valid.',
  address_not_allowed: 'The website is at an address that is not allowed.',
  name_not_resolved: 'The website could not be reached: its name has no address.',
  timeout: 'The website could not be reached: it did not answer in time.',
  connection: 'The website could not be reached.',
  tls: 'The website could not be reached: its certificate is not valid.',
  malformed: 'The answer of the website cannot be read.',
  too_many_redirects: 'The website redirects too often.',
  aborted: 'The visit was interrupted.',
};

/** Returns the reason why a visit got no page, as a sentence. Null: it did. */
export function failureOf(seen: Visit): string | null {
  if (seen.outcome === 'unreachable') return failures[seen.reason];
  if (seen.outcome === 'http_error') return `The website answered with the status ${seen.status}.`;
  if (seen.outcome === 'not_html') return 'The website is no page of text.';
  return seen.outcome === 'forbidden' ? 'The website forbids visits.' : null;
}

const most_bytes = 1024 * 1024;
const most_redirects = 3;
/** "Crawlers SHOULD follow at least five consecutive redirects" to a robots.txt. */
const most_robots_redirects = 5;
const most_hold_ms = 60_000;
const accepted = 'text/html,application/xhtml+xml,application/rss+xml,application/atom+xml,application/xml;q=0.8';

/**
 * Gets a page: one GET at each hop, robots.txt obeyed, one request a second and host, at most 1 MiB, 5 s and 3 redirects. Each hop goes only
 * to addresses that were checked. A domain that cannot be reached is tried with `www.` before it. Never throws: whatever goes wrong is the
 * outcome.
 */
export async function visit(text: string, visitor: Visitor, signal?: AbortSignal): Promise<Visit> {
  const seen = await visitAt(text, visitor, signal);
  const other = seen.outcome === 'unreachable' && mayBeAtWww.has(seen.reason) ? atWww(text) : undefined;
  if (other === undefined || signal?.aborted) return seen;
  const seen_there = await visitAt(other, visitor, signal);
  return seen_there.outcome === 'unreachable' ? seen : seen_there;
}

const mayBeAtWww = new Set<UnreachableReason>(['name_not_resolved', 'connection', 'timeout', 'tls']);

/** Some sites are at `www.` alone. Undefined for what is no bare domain. */
function atWww(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || registrableDomain(url.hostname) !== url.hostname) return undefined;
  url.hostname = `www.${url.hostname}`;
  return url.href;
}

async function visitAt(text: string, visitor: Visitor, signal?: AbortSignal): Promise<Visit> {
  const hop: Hop = { url: text, redirects: [], left_ms: visitor.timeout_ms };
  try {
    while (hop.redirects.length <= most_redirects) {
      const url = checkedUrl(hop.url, visitor.policy);
      hop.url = url.href;
      const rules = await robotsOf(url, visitor, signal);
      if (!rules.allows(url)) return forbiddenByRobots(hop, rules);
      const request = { accept: accepted, most_bytes, delay_ms: rules.crawl_delay_ms, signal };
      const answer = await ask(url, hop, visitor, request);
      const target = targetOf(answer, url.href);
      if (target === undefined) return visitOf(answer, hop);
      hop.redirects.push(url.href);
      hop.url = target;
    }
    return { outcome: 'unreachable', url: hop.url, reason: 'too_many_redirects' };
  } catch (error) {
    return { outcome: 'unreachable', url: hop.url, reason: signal?.aborted ? 'aborted' : reasonOf(error) };
  }
}

/** The rest of what a visit knows between its hops. */
interface Hop {
  url: string;
  redirects: string[];
  left_ms: number;
}

class Refused extends Error {
  readonly reason: UnreachableReason;
  constructor(reason: UnreachableReason) {
    super(reason);
    this.reason = reason;
  }
}

/** @throws Refused */
function checkedUrl(text: string, policy: AddressPolicy): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Refused('invalid_url');
  url.hash = '';
  const check = checkEndpointUrl(url.href, policy);
  if (!check.ok) throw new Refused('address_not_allowed');
  return check.url;
}

interface Ask {
  accept: string;
  most_bytes: number;
  delay_ms: number;
  signal?: AbortSignal | undefined;
}

/** Sends one request of a visit, once its host may be asked, within the rest of the visit's time. */
async function ask(url: URL, hop: Hop, visitor: Visitor, { delay_ms, ...request }: Ask): Promise<Answer> {
  const { agent, user_agent, clock, pacing } = visitor;
  await pacing.wait(url.hostname, delay_ms, request.signal);
  const started = clock.now();
  const answer = await get(url, { agent, user_agent, timeout_ms: hop.left_ms, ...request });
  hop.left_ms -= clock.now() - started;
  const wait_s = waitAskedFor(answer);
  if (wait_s !== null) pacing.hold(url.hostname, Math.min(wait_s * 1000, most_hold_ms));
  if (hop.left_ms <= 0) throw new TooSlow();
  return answer;
}

/**
 * The rules for a URL, from the process's memory or from its host. Others may wait for the same file, so that `signal` ends the waiting alone.
 * @throws where the host cannot be reached: then neither can the page
 */
async function robotsOf({ origin }: URL, visitor: Visitor, signal?: AbortSignal): Promise<RobotsRules> {
  signal?.throwIfAborted();
  const rules = visitor.robots.rulesOf(origin, () => readRobots(origin, visitor));
  if (!signal) return rules;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([rules, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
}

async function readRobots(origin: string, visitor: Visitor): Promise<RobotsRules> {
  const hop: Hop = { url: `${origin}/robots.txt`, redirects: [], left_ms: visitor.timeout_ms };
  const request = { accept: 'text/plain, */*;q=0.5', most_bytes: most_robots_bytes, delay_ms: 0 };
  try {
    while (hop.redirects.length <= most_robots_redirects) {
      const url = checkedUrl(hop.url, visitor.policy);
      const answer = await ask(url, hop, visitor, request);
      const target = targetOf(answer, url.href);
      if (target === undefined) return rulesOf(origin, answer);
      hop.redirects.push(hop.url);
      hop.url = target;
    }
  } catch (error) {
    if (hop.redirects.length === 0) throw error;
  }
  return all_forbidden;
}

function forbiddenByRobots({ url }: Hop, { state }: RobotsRules): Visit {
  const by = state === 'unavailable' ? 'robots_unavailable' : 'robots';
  return { outcome: 'forbidden', url, by, status: null };
}

/** Returns the target of a redirect. Undefined for any other answer. */
function targetOf({ status, headers }: Answer, from: string): string | undefined {
  if (![301, 302, 303, 307, 308].includes(status)) return undefined;
  const target = URL.parse(String(headers.location ?? ''), from);
  if (headers.location === undefined || target === null) throw new Refused('malformed');
  return target.href;
}

function visitOf(answer: Answer, { url, redirects }: Hop): Visit {
  const { status, headers, bytes, is_truncated } = answer;
  if (status === 401 || status === 403 || status === 451) return { outcome: 'forbidden', url, by: 'server', status };
  if (status < 200 || status > 299) {
    return { outcome: 'http_error', url, status, retry_after_s: waitAskedFor(answer) };
  }
  const content_type = headers['content-type'] ?? null;
  const text = decodeText(bytes, content_type ?? undefined);
  const content = contentOf(content_type, text);
  if (content === undefined) return { outcome: 'not_html', url, content_type };
  return { outcome: 'page', url, content, text, is_truncated, redirects };
}

/** By the header; what is XML, or not said, by its first element. */
function contentOf(content_type: string | null, text: string): 'html' | 'feed' | undefined {
  const type = content_type?.split(';')[0]?.trim().toLowerCase() ?? '';
  const root = firstElement(text.slice(0, 4_096));
  if (/^(?:rss|feed|rdf:rdf)$/.test(root)) return /^$|xml$|^text\//.test(type) ? 'feed' : undefined;
  if (type === '') return /^(?:html|head|body|title|meta)$/.test(root) ? 'html' : undefined;
  return type === 'text/html' || type === 'application/xhtml+xml' ? 'html' : undefined;
}

function firstElement(start: string): string {
  return /<([a-z][\w:]*)/i.exec(withoutComments(start))?.[1]?.toLowerCase() ?? '';
}

function withoutComments(text: string): string {
  const begin = text.indexOf('<!--');
  const end = begin < 0 ? -1 : text.indexOf('-->', begin);
  return end < 0 ? text : text.slice(0, begin) + withoutComments(text.slice(end + 3));
}

/** Returns the wait that a server asks for when it is asked too often. */
const waitAskedFor = ({ status, headers }: Answer): number | null =>
  status === 429 || status === 503 ? (retryAfterOf(headers['retry-after']) ?? null) : null;

function reasonOf(error: unknown): UnreachableReason {
  if (error instanceof Refused) return error.reason;
  if (error instanceof TooSlow) return 'timeout';
  if (error instanceof Unreadable) return 'malformed';
  const code = String((error as NodeJS.ErrnoException | null)?.code);
  if (code === 'address_not_allowed' || code === 'name_not_resolved') return code;
  if (code.includes('TIMEOUT') || code === 'ETIMEDOUT') return 'timeout';
  if (/^HPE_|^UND_ERR_(?:HEADERS|RES)|^UND_ERR_INVALID/.test(code)) return 'malformed';
  return /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO|EPROTO|HOSTNAME/.test(code) ? 'tls' : 'connection';
}
