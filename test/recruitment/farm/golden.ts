import type { Brand } from '../../../src/recruitment/evidence/evidence.ts';
import type { Page, Site } from './farm.ts';

/** A site of the farm, and what a person says of it. */
export interface GoldenSite extends Site {
  /** The page that a scan visits. */
  path?: string;
  golden: {
    /** The outcome of the visit; a page unless it is said. */
    outcome?: string;
    language?: string | null;
    /** Kind and name: `competitor_link percolator.com`, `affiliate_network Awin`, `coupon_page /coupons`, `keyword espresso`. */
    evidence?: string[];
    /** The bounds of the score. */
    score?: [number, number];
    /** The best one first. */
    addresses?: string[];
  };
}

/** It sells coffee machines. */
export const brand: Brand = {
  website_url: 'https://brewly.com',
  competitors: ['percolator.com', 'beanworks.de', 'moka-house.it', 'lacafetiere.fr'],
  keywords: [
    'espresso',
    'Kaffeemaschine',
    'cafetière',
    'cafetera',
    'macchina da caffè',
    'cafeteira',
    'koffiezetapparaat',
    'ekspres do kawy',
    'kaffemaskin',
    'コーヒーメーカー',
  ],
  languages: ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'sv', 'ja'],
  countries: ['US', 'DE'],
};

/** A whole page. Without `lang` it does not say its language. */
export function html({
  lang = '',
  title,
  head = '',
  body,
}: {
  lang?: string;
  title: string;
  head?: string;
  body: string;
}): string {
  const tag = lang === '' ? '<html>' : `<html lang="${lang}">`;
  return `<!doctype html>${tag}<head><meta charset="utf-8"><title>${title}</title>${head}</head><body><header><a href="/">Home</a></header><main>${body}</main></body></html>`;
}

export function a(href: string, text = 'here', rel = ''): string {
  return `<a href="${href}"${rel && ` rel="${rel}"`}>${text}</a>`;
}

export const feed_link = '<link rel="alternate" type="application/rss+xml" title="Feed" href="/feed">';
export const mailed = { exchangers: ['10 mail.host.com'] };
export const text_page = (body: string): Page => html({ title: 'Page', body });
