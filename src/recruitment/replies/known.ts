import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beginnings, vocabularies } from './phrases.ts';
import { type Reading, read, type Word, wordsWithin } from './words.ts';

/** A file of the words that the texts have, which training makes: a line is a language, a tab and its words. */
const file = join(import.meta.dirname, 'known_words.gz');

/** Returns the words of these texts for `known_words.gz`: as they are written, and without their accents, which many leave out. */
export function knownWordsOf(texts: readonly { language: string; text: string }[]): string {
  const words = new Map<string, Set<string>>();
  for (const { language, text } of texts) {
    const its = words.get(language) ?? new Set();
    words.set(language, its);
    for (const { word, written } of wordsWithin(read(text))) its.add(written).add(word);
  }
  return [...words].map(([language, its]) => `${language}\t${[...its].sort().join(' ')}\n`).join('');
}

export function readKnownWords(): string {
  return gunzipSync(readFileSync(file)).toString();
}

const known = new Map(
  readKnownWords()
    .trimEnd()
    .split('\n')
    .map((line): [string, Set<string>] => {
      const [language = '', words = ''] = line.split('\t');
      return [language, new Set(words.split(' '))];
    }),
);

/**
 * The share of a text's words that one language with a model knows, at the most: about 0.9 in a text of that language, at most 0.6 in nearly any other.
 * An accent that is written has to be right, which tells neighbours apart. Names, which are the same everywhere, do not count, unless there is nothing else.
 */
export function shareKnown(reading: Reading): number {
  const words = wordsWithin(reading).slice(0, 200);
  const common = words.filter(({ capital }) => !capital);
  const counted = common.length > 0 ? common : words;
  if (counted.length === 0) return 1;
  const shares = [...vocabularies.keys()].map(
    (language) => counted.filter((word) => isKnown(language, word)).length / counted.length,
  );
  return Math.max(...shares);
}

function isKnown(language: string, { word, written }: Word): boolean {
  if (known.get(language)?.has(written)) return true;
  if (written === word && vocabularies.get(language)?.has(word)) return true;
  return [...(beginnings.get(language) ?? [])].some((beginning) => word.startsWith(beginning));
}
