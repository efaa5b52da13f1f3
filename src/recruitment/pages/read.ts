/** Reads a page: its description of itself, and its links. */
import { getDomain, getHostname } from 'tldts';
import { readFeed } from './feed.ts';
import { walkHtml } from './html.ts';
import { jsonLdObjects, stringsOf } from './json_ld.ts';
import { canonicalKey, channelOf } from './key.ts';
import { countryOfHost, countryOfTag, languageOfTag, languageOfText } from './language.ts';
import { type Account, collapse, type Link, line, most_line_characters, type Page } from './page.ts';

const most_links = 2_000;
/** The same addresses again count here: a page may repeat one a hundred thousand times. */
const most_checked_links = 10_000;
const most_feeds = 20;
/** Elements with feeds and accounts, and scripts with JSON-LD. */
const most_alternates = 50;
const most_json_ld = 50;
const most_accounts = 100;
const most_text_characters = 200_000;
const most_url_characters = 2_048;
const blocks = new Set(
  'address article aside blockquote br dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section table td th tr ul'.split(
    ' ',
  ),
);

/** Reads the text of a visit. Never throws; time and size are bounded, whatever the page holds. */
export function readPage(text: string, url: string, content: 'html' | 'feed' = 'html'): Page {
  return content === 'feed' ? readFeed(text, url, readHtml) : readHtml(text, url);
}

function readHtml(html: string, url: string): Page {
  const reader = new PageReader(url);
  walkHtml(html, reader);
  return reader.page();
}

class PageReader {
  readonly #url: string;
  #base: string;
  readonly #meta = new Map<string, string>();
  readonly #tags: { html?: string | undefined; content?: string | undefined } = {};
  readonly #feeds = new Map<string, string | null>();
  readonly #links = new Map<string, Link>();
  readonly #accounts = new Map<string, Account>();
  #country: string | undefined;
  #title = '';
  #hasTitle = false;
  #texts: string[] = [];
  #characters = 0;
  #checked = 0;
  #link: Link | undefined;
  #json: string | undefined;
  #alternates = 0;
  #json_ld = 0;

  constructor(url: string) {
    this.#url = url;
    this.#base = url;
  }

  open(name: string, attributes: Record<string, string>): void {
    if (blocks.has(name)) {
      this.#add(' ');
      this.#nameLink(' ');
    }
    if (name === 'a' || name === 'area') this.#openLink(attributes);
    else if (name === 'img') this.#nameLink(` ${attributes.alt ?? ''} `);
    else if (name === 'link') this.#readLinkElement(attributes);
    else if (name === 'meta') this.#readMeta(attributes);
    else if (name === 'html') this.#tags.html ??= attributes.lang ?? attributes['xml:lang'];
    else if (name === 'base' && attributes.href) this.#base = this.#absolute(attributes.href)?.href ?? this.#base;
    else if (name === 'script' && /ld\+json/i.test(attributes.type ?? '') && this.#json_ld++ < most_json_ld)
      this.#json = '';
  }

  text(text: string, { element, is_hidden }: { element: string; is_hidden: boolean }): void {
    if (element === 'title') this.#addTitle(text);
    else if (element === 'script' && this.#json !== undefined) this.#json += text;
    else if (!is_hidden) {
      this.#add(text);
      this.#nameLink(text);
    }
  }

  #addTitle(text: string): void {
    if (!this.#hasTitle && this.#title.length < most_line_characters) this.#title += text;
  }

  close(name: string): void {
    if (name === 'title') this.#hasTitle ||= this.#title.trim() !== '';
    if (blocks.has(name)) this.#add(' ');
    if (name === 'a') this.#link = undefined;
    if (name === 'script' && this.#json !== undefined) {
      for (const object of jsonLdObjects(this.#json)) this.#readObject(object);
      this.#json = undefined;
    }
  }

  page(): Page {
    const text = collapse(this.#texts.join(''));
    const title = line(this.#title) ?? this.#said('og:title', 'twitter:title');
    const description = this.#said('description', 'og:description', 'twitter:description');
    return {
      url: this.#url,
      title,
      site_name: this.#said('og:site_name', 'application-name'),
      description,
      language_code: this.#language(`${title ?? ''}. ${description ?? ''}. ${text}`),
      country_code: this.#countryCode(),
      is_podcast: /\bpodcast/i.test(title ?? ''),
      feeds: [...this.#feeds].map(([url, title]) => ({ url, title })),
      social: [...this.#accounts.values()],
      links: [...this.#links.values()].map((link) => ({ ...link, text: line(link.text) ?? '' })),
      text,
    };
  }

  #language(text: string): string | null {
    const { html, content } = this.#tags;
    return (
      languageOfTag(html) ??
      languageOfTag(content) ??
      languageOfText(text) ??
      languageOfTag(this.#meta.get('og:locale')) ??
      null
    );
  }

  #countryCode(): string | null {
    const tags = [this.#tags.html, this.#meta.get('og:locale'), this.#tags.content];
    const hints = [this.#country, countryOfHost(getHostname(this.#url) ?? ''), ...tags.map(countryOfTag)];
    return hints.find((hint) => hint !== undefined) ?? null;
  }

  #said(...names: string[]): string | null {
    for (const name of names) {
      const said = line(this.#meta.get(name) ?? '');
      if (said !== null) return said;
    }
    return null;
  }

  #openLink({ href = '', rel = '', title = '', 'aria-label': label = '' }: Record<string, string>): void {
    this.#link = undefined;
    if (this.#links.size >= most_links) return;
    const url = this.#absolute(href);
    if (url === undefined) return;
    this.#addAccount(url.href);
    url.hash = '';
    const known = this.#links.get(url.href);
    if (known !== undefined && known.text.trim() !== '') return;
    this.#link = known ?? { url: url.href, text: '', rel: rel.toLowerCase().split(/\s+/, 20).filter(Boolean) };
    this.#nameLink(` ${label || title} `);
    if (known === undefined) this.#links.set(url.href, this.#link);
  }

  #nameLink(text: string): void {
    if (this.#link && this.#link.text.length < most_line_characters) this.#link.text += text;
  }

  #readLinkElement({ rel = '', href = '', type = '', title }: Record<string, string>): void {
    if (!/\b(?:me|alternate)\b/i.test(rel) || this.#alternates++ >= most_alternates) return;
    const url = this.#absolute(href);
    if (url === undefined) return;
    if (/\bme\b/i.test(rel)) this.#addAccount(url.href);
    const is_feed = /\balternate\b/i.test(rel) && /^application\/(?:rss|atom|feed)\+(?:xml|json)/i.test(type);
    if (is_feed && this.#feeds.size < most_feeds) this.#feeds.set(url.href, line(title ?? ''));
  }

  #readMeta(attributes: Record<string, string>): void {
    const { name, property, content = '' } = attributes;
    if (attributes['http-equiv']?.toLowerCase() === 'content-language') this.#tags.content ??= content;
    const key = (name ?? property ?? '').toLowerCase();
    if (key !== '' && this.#meta.size < 200 && !this.#meta.has(key)) this.#meta.set(key, content.slice(0, 5_000));
    if (key === 'twitter:site') this.#addAccount(`https://x.com/${content.replace(/^@/, '')}`);
  }

  #readObject(object: Record<string, unknown>): void {
    for (const url of stringsOf(object.sameAs)) this.#addAccount(url);
    const [country] = stringsOf(object.addressCountry);
    if (country !== undefined && /^[A-Z]{2}$/.test(country)) this.#country ??= country;
  }

  #addAccount(url: string): void {
    const account = accountOf(url);
    if (!account || this.#accounts.size >= most_accounts) return;
    const id = `${account.channel} ${account.key}`;
    if (!this.#accounts.has(id)) this.#accounts.set(id, account);
  }

  #absolute(href: string): URL | undefined {
    if (href === '' || href.length > most_url_characters || this.#checked++ > most_checked_links) return undefined;
    const url = URL.parse(href, this.#base);
    return url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' ? url : undefined;
  }

  #add(text: string): void {
    if (this.#characters >= most_text_characters) return;
    const added = text.slice(0, most_text_characters - this.#characters);
    this.#characters += added.length;
    this.#texts.push(added);
  }
}

/** The account that an address names. Undefined for addresses on sites of their own, and for a platform's own pages. */
function accountOf(url: string): Account | undefined {
  const channel = url.length > most_url_characters ? undefined : channelOf(url);
  if (channel === undefined || channel === 'website') return undefined;
  const key = canonicalKey(channel, url);
  return key === undefined || key === getDomain(url) ? undefined : { channel, key, url };
}
