/** Detects the language of a page, and hints of the country it is for. */

import { detectAll } from 'tinyld';
import { getPublicSuffix } from 'tldts';

const most_checked_characters = 3_000;
/** Fewer letters say nothing. */
const least_letters = 24;
/** Accuracies from 0 to 1. A language below `sure_accuracy` must be far ahead of the next. */
const sure_accuracy = 0.2;
const least_accuracy = 0.005;

/** ISO 639-1 in lower case, by a tag such as `de-AT`. Norwegian is one language, `no`. Undefined for a tag that is none. */
export function languageOfTag(tag: string | undefined): string | undefined {
  const language = localeOf(tag)?.language;
  if (language === undefined || !/^[a-z]{2}$/.test(language)) return undefined;
  return language === 'nb' || language === 'nn' ? 'no' : language;
}

/** ISO 3166-1 alpha-2 in upper case, by a tag such as `de-AT`. */
export function countryOfTag(tag: string | undefined): string | undefined {
  const region = localeOf(tag)?.region;
  return region !== undefined && /^[A-Z]{2}$/.test(region) ? region : undefined;
}

/** The language of a text, detected by its letters and words. Undefined where it is too short or too mixed. */
export function languageOfText(text: string): string | undefined {
  const sample = withoutForeignLatin(text.slice(0, most_checked_characters));
  const letters = sample.match(/\p{L}/gu)?.length ?? 0;
  // A sign of Chinese or Japanese says as much as a word.
  const weight =
    letters +
    5 * (sample.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu)?.length ?? 0);
  if (weight < (/\p{Script=Latin}/u.test(sample) ? least_letters : least_letters / 2)) return undefined;
  const [best, next] = detectAll(sample);
  const is_clear =
    best && (best.accuracy >= sure_accuracy || best.accuracy >= least_accuracy + 2 * (next?.accuracy ?? 0));
  return is_clear ? languageOfTag(best.lang) : undefined;
}

/**
 * Pages in other scripts have names, menus and addresses in Latin letters, and hardly any page in Latin letters has a fifth of its letters in
 * another script.
 */
function withoutForeignLatin(text: string): string {
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  return letters - latin >= letters / 5 ? text.replaceAll(/\p{Script=Latin}+/gu, ' ') : text;
}

/** Country domains that are used all over the world say nothing. */
const generic_country_domains = new Set(
  'ai am bz cc cd cm co dj fm gg im io is la ly me ms nu pw sc sh so st su tk to tv vc vg ws'.split(' '),
);
const countries_of_domains: Record<string, string> = { uk: 'GB', 'xn--p1ai': 'RU', 'xn--j1amh': 'UA' };

/** The country of a host's top-level domain, where that is one of a country. */
export function countryOfHost(host: string): string | undefined {
  const top = getPublicSuffix(host)?.split('.').at(-1) ?? '';
  if (generic_country_domains.has(top) || top === 'eu') return undefined;
  return countries_of_domains[top] ?? (/^[a-z]{2}$/.test(top) ? top.toUpperCase() : undefined);
}

function localeOf(tag: string | undefined): Intl.Locale | undefined {
  const cleaned = tag
    ?.trim()
    .replaceAll('_', '-')
    .split(/[,;\s]/)[0];
  if (!cleaned || cleaned.length > 35) return undefined;
  try {
    return new Intl.Locale(cleaned);
  } catch {
    return undefined;
  }
}
