/** Reads an RSS or Atom feed. */
import { Parser } from 'htmlparser2';
import { most_depth } from './html.ts';
import { languageOfTag, languageOfText } from './language.ts';
import { line, type Page } from './page.ts';

const most_characters = 1024 * 1024;
const chunk_characters = 16_384;
const entries = new Set(['item', 'entry']);
const contents = new Set([
  'description',
  'content:encoded',
  'content',
  'summary',
  'itunes:summary',
  'subtitle',
  'itunes:subtitle',
]);

/**
 * A feed as a page: its own title, description and language, and the links and text of its entries' notes. These are HTML, read by `readHtml`.
 */
export function readFeed(xml: string, url: string, readHtml: (html: string, url: string) => Page): Page {
  const feed = new FeedReader();
  const parser = new Parser(feed, { xmlMode: true });
  for (let at = 0; at < Math.min(xml.length, most_characters) && !feed.isTooDeep; at += chunk_characters) {
    parser.write(xml.slice(at, at + chunk_characters));
  }
  if (!feed.isTooDeep) parser.end();
  const { title, description, language, link, is_podcast } = feed;
  const notes = readHtml(feed.notes(), URL.parse(link, url)?.href ?? url);
  return {
    ...notes,
    url,
    title: line(title),
    site_name: line(title),
    description: line(description),
    language_code: languageOfTag(language) ?? languageOfText(`${title}. ${description}. ${notes.text}`) ?? null,
    is_podcast,
    feeds: [{ url, title: line(title) }],
  };
}

class FeedReader {
  title = '';
  description = '';
  language = '';
  link = '';
  is_podcast = false;
  isTooDeep = false;
  readonly #path: string[] = [];
  readonly #notes: string[] = [];

  onopentag(name: string, { href, rel, type = '' }: Record<string, string>): void {
    this.#path.push(name);
    this.isTooDeep ||= this.#path.length > most_depth;
    if (name.startsWith('itunes:') || (name === 'enclosure' && type.startsWith('audio/'))) this.is_podcast = true;
    if (name === 'link' && href && (rel ?? 'alternate') === 'alternate') this.#addLink(href);
    if (contents.has(name) || name === 'title') this.#notes.push('<p>');
  }

  ontext(text: string): void {
    const element = this.#path.at(-1) ?? '';
    const is_of_entry = this.#path.some((each) => entries.has(each));
    if (!is_of_entry) this.#readFeedText(element, text);
    if (contents.has(element)) this.#notes.push(text);
    else if (is_of_entry && element === 'title') this.#notes.push(escapeHtml(text));
    else if (element === 'link' && is_of_entry) this.#addLink(text);
  }

  onclosetag(): void {
    this.#path.pop();
  }

  /** Returns the notes as one HTML text: notes in a feed are HTML themselves. */
  notes(): string {
    return this.#notes.join('');
  }

  #readFeedText(element: string, text: string): void {
    // The title and the description of an image in the channel are not the channel's.
    if (this.#path.includes('image')) return;
    if (element === 'title') this.title += text;
    else if (element === 'description' || element === 'subtitle') this.description += text;
    else if (element === 'language') this.language += text.trim();
    else if (element === 'link') this.link += text.trim();
  }

  #addLink(href: string): void {
    if (this.link === '' && !this.#path.some((each) => entries.has(each))) this.link = href;
    this.#notes.push(`<a href="${escapeHtml(href.trim())}"></a>`);
  }
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
