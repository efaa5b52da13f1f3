/** A page as it was read. */
import type { Channel } from './platforms/platforms.ts';

export interface Link {
  url: string;
  /** The text of the link, or of its image. */
  text: string;
  /** In lower case: `nofollow`, `sponsored`, `me` … */
  rel: string[];
}

export interface Account {
  channel: Channel;
  key: string;
  url: string;
}

export interface Page {
  url: string;
  title: string | null;
  site_name: string | null;
  description: string | null;
  language_code: string | null;
  country_code: string | null;
  /** It is a feed of episodes, or says that it is a podcast. */
  is_podcast: boolean;
  feeds: { url: string; title: string | null }[];
  /** Accounts and publishers on platforms that it links to, in order. Its own are among them. */
  social: Account[];
  /** All links to pages, inner ones too, each address once. */
  links: Link[];
  /** The visible text, spaces collapsed. */
  text: string;
}

/** The page that a visit fetched. */
export interface VisitedPage {
  text: string;
  /** The final URL, after redirects. */
  url: string;
  content: 'html' | 'feed';
}

export const most_line_characters = 500;

/** One line of it, null where it is empty. */
export function line(text: string): string | null {
  const collapsed = collapse(text.slice(0, 4 * most_line_characters)).slice(0, most_line_characters);
  return collapsed === '' ? null : collapsed;
}

/** Each run of spaces is one; what is invisible goes. */
export function collapse(text: string): string {
  return text.replace(/[\s\u00a0\u200b\u00ad\ufeff]+/g, ' ').trim();
}

/** In lower case and without accents; the letters of other scripts are kept whole. */
export function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/(\p{Script=Latin})\p{M}+/gu, '$1')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ı', 'i');
}
