/** Patterns as `recheck` can tell something of them: small ones, whose growth is that of the whole. */
import type { Pattern } from './collect.ts';
import { signsOf } from './signs.ts';

/**
 * The alternatives of a pattern that repeat something without a bound: the others take a time that grows with the length of the text, and a pattern takes no
 * longer than all of its alternatives one after another. Counts are made small, which changes the time by a factor alone.
 */
export function piecesOf({ source, flags }: Pattern): { source: string; flags: string }[] {
  const is_folded = flags.includes('i');
  const kept = flags.replace(/[giyduv]/g, '');
  return alternatives(source)
    .map((one) => one.map((each) => smaller(plain(is_folded ? folded(each) : each))))
    .filter((one) => one.some((each) => /^(?:[*+]|\{\d+,\})$/.test(each)))
    .map((one) => ({ source: one.join(''), flags: kept }));
}

function alternatives(source: string): string[][] {
  const found: string[][] = [[]];
  let depth = 0;
  for (const each of signsOf(source)) {
    if (each === '(') depth += 1;
    if (each === ')') depth -= 1;
    if (each === '|' && depth === 0) found.push([]);
    else found.at(-1)?.push(each);
  }
  return found;
}

/** `{2,200}` says as much as `{2,3}`. */
function smaller(each: string): string {
  const [, least, most] = /^\{(\d+)(?:,(\d*))?\}$/.exec(each) ?? [];
  if (least === undefined) return each;
  const from = Math.min(Number(least), 2);
  if (!each.includes(',')) return `{${from}}`;
  return most === '' ? `{${from},}` : `{${from},${Math.max(from, Math.min(Number(most), 3))}}`;
}

/** A pattern that does not regard case is one of small letters. */
const folded = (each: string): string =>
  each.startsWith('\\') ? each : each.startsWith('[') ? foldedClass(each) : each.toLowerCase();

const foldedClass = (each: string): string =>
  each.replace(/\\[pP]\{[^}]*\}|\\u\{?[0-9a-fA-F]+\}?|\\[\s\S]|[^\\]/gu, (one) =>
    one.startsWith('\\') ? one : one.toLowerCase(),
  );

/** Some of the letters that a property names, which overlap with other classes as all of them do: the whole of Unicode takes minutes. */
const stand_ins: Record<string, string> = {
  ...{
    L: 'a-zA-Zà-ÿ',
    Lu: 'A-Z',
    Ll: 'a-zà-ÿ',
    M: '\\u0300-\\u036f',
    N: '0-9',
    Nd: '0-9',
    P: '!-\\/',
    Cc: '\\x00-\\x1f',
  },
  ...{
    Cf: '\\u200b-\\u200f',
    Cs: '\\ud800-\\udfff',
    Z: ' \\u2028',
    Zl: '\\u2028',
    Zp: '\\u2029',
    Emoji_Presentation: '☀-☄',
    Extended_Pictographic: '☀-☄',
  },
  ...{
    'Script=Latin': 'a-zA-Zà-ÿ',
    'Script=Cyrillic': 'а-я',
    'Script=Greek': 'α-ω',
    'Script=Han': '一-丏',
    'Script=Hangul': '가-갏',
  },
  ...{ 'Script=Hiragana': 'ぁ-ゖ', 'Script=Katakana': 'ァ-ヺ', 'Script=Thai': 'ก-ฮ' },
};

function plain(each: string): string {
  const is_class = each.startsWith('[');
  return each
    .replace(/\\p\{([^}]*)\}/g, (_, name) => (is_class ? standIn(name) : `[${standIn(name)}]`))
    .replace(/\\u\{[^}]*\}/g, '\\u2603')
    .replace(/[\u{10000}-\u{10ffff}]/gu, '\u2603');
}

/** Other properties name letters that no pattern names otherwise. */
const standIn = (name: string): string => stand_ins[name] ?? 'α-ω';
