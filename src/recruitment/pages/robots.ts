/** Applies a host's robots.txt (RFC 9309). */
import robots_parser from 'robots-parser';
import type { Answer } from './exchange.ts';
import type { Clock } from './pacing.ts';

// Its types say that it is a module, which it is not.
const parseRobots = robots_parser as unknown as typeof robots_parser.default;

/** The product token that groups of a robots.txt are matched with. */
export const product_token = 'RailBot';

/** "Crawlers MAY impose a parsing limit", of at least 500 KiB. */
export const most_robots_bytes = 500 * 1024;
/** Nobody needs more rules with wildcards. */
const most_wildcard_characters = 64 * 1024;
/** Each of their characters is compared with each of an address: some tenths of a second. */
const most_comparisons = 20_000_000;
/** Limits the rules, and the names of crawlers between them. */
const most_lines = 10_000;
/** A site that asks for longer waits is visited this rarely. */
const most_crawl_delay_ms = 30_000;

export interface RobotsRules {
  allows(url: URL): boolean;
  crawl_delay_ms: number;
  /** The state: nothing is allowed if it is `unavailable`. */
  state: 'read' | 'absent' | 'unavailable';
  /** The approximate size in memory. */
  bytes: number;
}

/** There is none (4xx): everything is allowed. */
export const nothing_forbidden: RobotsRules = { allows: () => true, crawl_delay_ms: 0, state: 'absent', bytes: 0 };
/** Applies where robots.txt cannot be fetched (5xx) or evaluated: nothing is allowed. */
export const all_forbidden: RobotsRules = { allows: () => false, crawl_delay_ms: 0, state: 'unavailable', bytes: 0 };

/** The rules of an answer to a request for robots.txt that is no redirect. */
export function rulesOf(origin: string, { status, bytes }: Pick<Answer, 'status' | 'bytes'>): RobotsRules {
  if (status >= 200 && status < 300) return parseRules(origin, bytes.toString('utf8'));
  return status >= 400 && status < 500 ? nothing_forbidden : all_forbidden;
}

function parseRules(origin: string, text: string): RobotsRules {
  const lines = ownLines(text.replace(/^\ufeff/, ''));
  if (lines.length > most_lines) return all_forbidden;
  const wildcards = lines.filter((line) => /^\s*(?:dis)?allow\s*:.*\*/i.test(line)).join('').length;
  if (wildcards > most_wildcard_characters) return all_forbidden;
  const robots = parseRobots(`${origin}/robots.txt`, lines.join('\n'));
  const delay_s = robots.getCrawlDelay(product_token) ?? 0;
  return {
    allows: ({ href }) =>
      href.length * wildcards <= most_comparisons && robots.isAllowed(href, product_token) !== false,
    crawl_delay_ms: Math.min(Math.max(delay_s, 0) * 1000, most_crawl_delay_ms),
    state: 'read',
    bytes: 2 * text.length,
  };
}

/**
 * Names of other crawlers become one, so that a rule is kept once and not for each of ten thousand names.
 */
function ownLines(text: string): string[] {
  const lines: string[] = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    const agent = /^\s*user-agent\s*:\s*([^#]*)/i.exec(line)?.[1]?.trim().toLowerCase();
    const kept = agent === undefined ? line : `User-agent: ${isOurs(agent) ? agent : 'other'}`;
    if (agent === undefined || kept !== lines.at(-1)) lines.push(kept);
  }
  return lines;
}

function isOurs(agent: string): boolean {
  return agent === '*' || agent.split('/')[0]?.trim() === product_token.toLowerCase();
}

/** "Crawlers SHOULD NOT use the cached version for more than 24 hours." */
const lifetime_ms = 24 * 3_600_000;
/** One that could not be had is asked for again after this. */
const lifetime_of_failure_ms = 600_000;
const most_kept_bytes = 32 * 1024 * 1024;
const bytes_per_entry = 1_024;

interface Entry {
  rules: Promise<RobotsRules>;
  expires_at: number;
  bytes: number;
}

/** By origin. Whoever asks while a file is on its way waits for that one. The least recently used go first. */
export class RobotsCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws what `load` throws, and keeps nothing then */
  rulesOf(origin: string, load: () => Promise<RobotsRules>): Promise<RobotsRules> {
    const known = this.#entries.get(origin);
    if (known && known.expires_at > this.#clock.now()) {
      this.#entries.delete(origin);
      this.#entries.set(origin, known);
      return known.rules;
    }
    this.#forget(origin);
    const entry: Entry = { rules: load(), expires_at: Number.POSITIVE_INFINITY, bytes: bytes_per_entry };
    this.#entries.set(origin, entry);
    this.#bytes += entry.bytes;
    entry.rules.then(
      (rules) => this.#keep(origin, entry, rules),
      () => this.#entries.get(origin) === entry && this.#forget(origin),
    );
    return entry.rules;
  }

  #keep(origin: string, entry: Entry, rules: RobotsRules): void {
    entry.expires_at = this.#clock.now() + (rules.state === 'unavailable' ? lifetime_of_failure_ms : lifetime_ms);
    if (this.#entries.get(origin) !== entry) return;
    entry.bytes += rules.bytes;
    this.#bytes += rules.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= most_kept_bytes) return;
      this.#forget(oldest);
    }
  }

  #forget(origin: string): void {
    this.#bytes -= this.#entries.get(origin)?.bytes ?? 0;
    this.#entries.delete(origin);
  }
}
