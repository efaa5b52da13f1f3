/** Scores how well a page's owner suits a brand as an affiliate. */
import type { Page } from '../pages/page.ts';
import { type Brand, type Evidence, type EvidenceKind, findEvidence, ownerOf } from './evidence.ts';

/** Points for the first piece of a kind, for each further one, and the most for all of them. Only pieces of different names count. */
const points: Record<EvidenceKind, { first: number; further: number; most: number }> = {
  competitor_link: { first: 30, further: 8, most: 46 },
  affiliate_network: { first: 20, further: 4, most: 28 },
  coupon_page: { first: 8, further: 2, most: 12 },
  keyword: { first: 8, further: 4, most: 20 },
};
const keyword_in_title = 6;
const language_match = 4;
const country_match = 4;
const has_audience = 3;
/** The share of the points that is left for a page in a language that the brand does not speak. */
const other_language = 0.4;

/** Evidence and score of a page at once. */
export function assess(page: Page, brand: Brand): { evidence: Evidence[]; score: number } {
  const evidence = findEvidence(page, brand);
  return { evidence, score: score(evidence, page, brand) };
}

/**
 * 0 to 100. Without evidence, and of the brand's own pages and its competitors', 0. Evidence of different kinds adds up; the right language and
 * country, and ways to reach an audience (feeds, accounts), add a little; a language that the brand does not name takes most of it away.
 */
export function score(evidence: readonly Evidence[], page: Page, brand: Brand): number {
  if (evidence.length === 0 || ownerOf(page.url, brand) !== 'other') return 0;
  const kinds = Object.keys(points) as EvidenceKind[];
  const sum = kinds.reduce((total, kind) => total + pointsOf(kind, evidence), 0) + pointsOfPage(evidence, page, brand);
  const factor = speaks(page, brand) === false ? other_language : 1;
  return Math.max(1, Math.min(100, Math.round(sum * factor)));
}

function pointsOf(kind: EvidenceKind, evidence: readonly Evidence[]): number {
  const names = new Set(
    evidence.filter((each) => each.kind === kind).map(({ text, url }) => (kind === 'coupon_page' ? url : nameIn(text))),
  );
  if (names.size === 0) return 0;
  const { first, further, most } = points[kind];
  return Math.min(most, first + (names.size - 1) * further);
}

function pointsOfPage(evidence: readonly Evidence[], page: Page, brand: Brand): number {
  const title = (page.title ?? '').toLowerCase();
  const in_title = evidence.some(({ kind, text }) => kind === 'keyword' && title.includes(nameIn(text).toLowerCase()));
  return (
    (in_title ? keyword_in_title : 0) +
    (speaks(page, brand) === true ? language_match : 0) +
    (page.country_code !== null && brand.countries.includes(page.country_code) ? country_match : 0) +
    (page.feeds.length > 0 ? has_audience : 0) +
    (page.social.length > 0 ? has_audience : 0)
  );
}

/** Undefined where the page's language is not known, or the brand names none. */
function speaks({ language_code }: Page, { languages }: Brand): boolean | undefined {
  if (language_code === null || languages.length === 0) return undefined;
  return languages.includes(language_code);
}

/** A piece of evidence begins with the name of the competitor, the network or the keyword. */
function nameIn(text: string): string {
  return text.split(': ', 1)[0] ?? text;
}
