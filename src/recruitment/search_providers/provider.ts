/**
 * The interface of every search provider. A provider is a client without a state of its own: whoever asks keeps where it stands, so that any worker
 * goes on where another one was killed.
 */
import type { Dispatcher } from 'undici';
import type { z } from 'zod';

export const provider_names = ['searxng', 'brave', 'youtube', 'index', 'url_list'] as const;
export type ProviderName = (typeof provider_names)[number];

export const channels = ['website', 'youtube', 'podcast', 'newsletter', 'instagram', 'tiktok', 'x', 'other'] as const;
export type Channel = (typeof channels)[number];

/** A query to a provider. It is kept with the run, so that each worker asks for the same. */
export interface ProviderQuery {
  text: string;
  /** Two letters, or any country. */
  country: string | null;
  /** Two letters, or any language. */
  language: string | null;
  /** The pages of `url_list`, those that are to be visited. */
  urls?: string[];
  /** The domain that pages of `index` link to. */
  links_to?: string;
}

/** A page or a channel that was found, as the provider describes it. */
export interface Hit {
  url: string;
  title: string;
  description: string;
  /** The channel, where the provider knows it better than the URL shows. */
  channel?: Channel;
  /** The id of the channel, where the provider has one. */
  key?: string;
  country_code?: string;
  language_code?: string;
  followers?: number;
}

export interface SearchPage {
  hits: Hit[];
  /** The place where the page after it begins. Null: there is none. */
  next: string | null;
}

export type Credentials = Readonly<Record<string, string>>;

export interface ProviderContext {
  credentials: Credentials;
  /** The provider's base URL, or what a setting puts in its place. */
  url: string;
  /** The agent that calls are made through: one that checks addresses, where the organization named the host. */
  dispatcher: Dispatcher;
  /** Aborts the calls. */
  cut_off: AbortSignal;
  /** The time that a call may take. */
  timeout_ms: number;
  /** Reads the pages that the organization has fetched: of `index` alone. */
  findPages?: FindPages;
}

/** At most so many pages, the best first, after so many of them. */
export type FindPages = (query: ProviderQuery, limit: number, after: number) => Promise<Hit[]>;

export interface SearchProvider {
  name: ProviderName;
  /** The name for people. */
  title: string;
  /** One clause for the documentation. */
  doc: string;
  /** The credentials that an organization can set. Null: the provider needs nothing. */
  credentials: z.ZodObject | null;
  /** The fields of `credentials` that are never shown. */
  secrets: readonly string[];
  /** Its base URL. Null: it is among the credentials, or nothing is called. */
  url: string | null;
  /** The price of a page, in millionths of a US dollar. */
  price: number;
  /** The units of the daily quota that a page takes, where there is such a quota. */
  units?: number;
  /**
   * The pages of a search, each of them one call when it is asked for.
   * @param from the `next` of the page before
   * @throws ProviderFailure
   */
  search(query: ProviderQuery, context: ProviderContext, from?: string): AsyncIterable<SearchPage>;
  /** The place where the page after `from` begins, of a provider that is paid by the page, which may have been paid for and is not to be paid again. */
  skip?(from: string | undefined): string | null;
  /**
   * Tries the credentials.
   * @throws ProviderFailure
   */
  check(context: ProviderContext): Promise<{ warnings: string[] }>;
}

type FailureKind =
  /** It was not reached, answered 5xx or something that is not documented. */
  | 'unavailable'
  /** No answer came in time: nobody knows whether the call counts. */
  | 'lost'
  /** Too many calls at a time. */
  | 'rate_limited'
  /** The quota of a day or a month is used up. */
  | 'quota_exhausted'
  /** It refuses the credentials. */
  | 'refused'
  /** It refuses the query. */
  | 'invalid';

/** A call that gave no page. The message holds no secret and nothing of the query. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure';
  readonly kind: FailureKind;
  /** The time that the provider asks to wait. */
  readonly retry_after_ms: number | undefined;

  constructor(kind: FailureKind, message: string, retry_after_ms?: number) {
    super(message);
    this.kind = kind;
    this.retry_after_ms = retry_after_ms;
  }

  /** Returns whether the call may have been counted by a provider that is paid by the call. */
  get may_be_billed(): boolean {
    return this.kind === 'lost';
  }
}
