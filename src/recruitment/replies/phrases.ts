import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plain } from './words.ts';

/**
 * The lexicon: phrases by what they say (`later`, `insult`, `left_the_company` …), one file a language under `phrases/`.
 * In a phrase `*` at the end of a word stands for any ending, and `_` for any one word.
 */
interface Node {
  meanings: Set<string>;
  words: Map<string, Node>;
  /** By the first two letters, so that few beginnings are compared with a word. */
  beginnings: Map<string, { beginning: string; node: Node }[]>;
  any: Node | undefined;
}
export interface Found {
  meaning: string;
  start: number;
  end: number;
}

const newNode = (): Node => ({ meanings: new Set(), words: new Map(), beginnings: new Map(), any: undefined });
const folder = join(import.meta.dirname, 'phrases');
const roots = new Map<string, Node>();
/** The words that the phrases of each language consist of. */
export const vocabularies = new Map<string, Set<string>>();
/** The beginnings of words that its phrases name. */
export const beginnings = new Map<string, Set<string>>();
for (const name of readdirSync(folder).sort()) {
  if (name.endsWith('.txt')) addFile(name.slice(0, -'.txt'.length), readFileSync(join(folder, name), 'utf8'));
}

/** Every phrase that the lexicon has in these languages, in the order of their beginnings. */
export function findPhrases(words: readonly string[], languages: readonly string[]): Found[] {
  const found: Found[] = [];
  for (const language of languages) {
    const root = roots.get(language);
    if (root) for (let start = 0; start < words.length; start++) walk(root, words, start, start, found);
  }
  return found;
}

function walk(node: Node, words: readonly string[], start: number, at: number, found: Found[]): void {
  for (const meaning of node.meanings) found.push({ meaning, start, end: at });
  const word = words[at];
  if (word === undefined) return;
  const next = node.words.get(word);
  if (next) walk(next, words, start, at + 1, found);
  for (const { beginning, node: after } of node.beginnings.get(word.slice(0, 2)) ?? []) {
    if (word.startsWith(beginning)) walk(after, words, start, at + 1, found);
  }
  if (node.any) walk(node.any, words, start, at + 1, found);
}

/** A line `[meaning]` begins a section; each other line is phrases separated by `|`. */
function addFile(language: string, text: string): void {
  const root = newNode();
  const vocabulary = new Set<string>();
  roots.set(language, root);
  vocabularies.set(language, vocabulary);
  const begins = new Set<string>();
  beginnings.set(language, begins);
  let meaning = '';
  for (const line of text.split('\n')) {
    const heading = /^\[(\w+)\]$/.exec(line.trim());
    if (heading) meaning = heading[1] as string;
    else if (line.trim() !== '' && !line.startsWith('#')) {
      for (const words of line.split('|').map(wordsOf)) {
        add(root, words, meaning);
        for (const word of words) {
          if (/^\p{L}+$/u.test(word)) vocabulary.add(word);
          if (/^\p{L}{4,}\*$/u.test(word)) begins.add(word.slice(0, -1));
        }
      }
    }
  }
}

function wordsOf(phrase: string): string[] {
  return plain(phrase)
    .replace(/'(?=(?:t|s|m|re|ve|ll|d)\b)/g, '')
    .split(/[\s'’,]+/)
    .filter((word) => word !== '');
}

function add(root: Node, words: readonly string[], meaning: string): void {
  if (words.length === 0) return;
  let node = root;
  for (const word of words) node = childOf(node, word);
  node.meanings.add(meaning);
}

function childOf(node: Node, word: string): Node {
  if (word === '_') {
    node.any ??= newNode();
    return node.any;
  }
  if (!word.endsWith('*')) {
    const child = node.words.get(word) ?? newNode();
    node.words.set(word, child);
    return child;
  }
  const beginning = word.slice(0, -1);
  const beside = node.beginnings.get(beginning.slice(0, 2)) ?? [];
  node.beginnings.set(beginning.slice(0, 2), beside);
  const same = beside.find((one) => one.beginning === beginning);
  if (same) return same.node;
  const child = newNode();
  beside.push({ beginning, node: child });
  return child;
}
