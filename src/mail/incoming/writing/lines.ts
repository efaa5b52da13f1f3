import {
  beginsAttribution,
  isAttribution,
  isBetweenDashes,
  isSeparatorOfOriginal,
  mayBeginAttribution,
} from './attributions.ts';
import { beginsHeader, headerName } from './header_lines.ts';
import { isLinked, withoutMark } from './html.ts';
import { isDelimiter, isMobileSignature } from './signatures.ts';

/** The kind of a line of a mail's text. */
export type Kind = 'blank' | 'text' | 'quote' | 'attribution' | 'header' | 'delimiter' | 'mobile';

export interface Line {
  text: string;
  kind: Kind;
  /** It consists of links: a template's words, not the writer's. */
  linked: boolean;
}

const longest_attribution = 500;
const most_lines = 4_000;
/** `> `, and the initials before it that some programs write: `JD> `. */
const quote = /^\s{0,3}(?:[A-Za-z]{1,3})?>|^\s*\|\s?>/;

/** The kind of each line. An attribution may run over up to five of them. */
export function readLines(text: string): Line[] {
  const given = text.split('\n', most_lines);
  const texts = given.map(withoutMark);
  const lines: Line[] = [];
  let in_code = false;
  while (lines.length < texts.length) {
    const at = lines.length;
    const line = texts[at] as string;
    if (/^\s*```/.test(line)) in_code = !in_code;
    const attributed = in_code ? 0 : linesOfAttribution(texts, at);
    if (attributed > 0)
      for (const part of texts.slice(at, at + attributed))
        lines.push({ text: part, kind: 'attribution', linked: false });
    else lines.push({ text: line, kind: in_code ? 'text' : kindOf(line), linked: isLinked(given[at] as string) });
  }
  return lines.map((line, at) => (isWrappedQuote(lines, at) ? { ...line, kind: 'quote' } : line));
}

/** The rest of a long quoted line, which a program broke without marking it again. */
function isWrappedQuote(lines: Line[], at: number): boolean {
  const [before, line, after] = [lines[at - 1], lines[at], lines[at + 1]];
  if (line?.kind !== 'text' || before?.kind !== 'quote' || after?.kind !== 'quote') return false;
  return before.text.length > 65 && !/[.?!:]\s*$/.test(before.text) && line.text.length < 60;
}

function kindOf(line: string): Kind {
  if (line.trim() === '') return 'blank';
  if (quote.test(line)) return 'quote';
  if (isDelimiter(line)) return 'delimiter';
  if (isMobileSignature(line)) return 'mobile';
  return headerName(line) ? 'header' : 'text';
}

/** Counts the lines from here on that are one attribution: `On … wrote:`, broken as programs break it. The line before one is none of it. */
function linesOfAttribution(texts: string[], at: number): number {
  const count = linesThatFit(texts, at);
  const begins = beginsAttribution(unquoted(texts[at] as string));
  return count > 1 && !begins && linesThatFit(texts, at + 1) === count - 1 ? 0 : count;
}

function linesThatFit(texts: string[], at: number): number {
  const first = unquoted(texts[at] as string);
  if (isSeparatorOfOriginal(first)) return 1;
  if (isBetweenDashes(first) && beginsHeader(texts, nextFilled(texts, at + 1))) return 1;
  if (!mayBeginAttribution(first)) return 0;
  let joined = '';
  for (let count = 1; count <= 5; count += 1) {
    const next = texts[at + count - 1];
    if (next === undefined) return 0;
    const words = unquoted(next);
    if (words.trim() === '') return 0;
    joined = `${joined} ${words}`.trim();
    if (joined.length > longest_attribution) return 0;
    if (isAttribution(joined, isQuoted(texts, at + count))) return count + nameBelow(joined, texts[at + count]);
  }
  return 0;
}

/** `Am 2.2.2026 schrieb`, and the writer on the next line. */
const nameBelow = (joined: string, next: string | undefined): number =>
  /\p{L}$/u.test(joined) && next !== undefined && /^[^>].{0,120}:$/.test(next) ? 1 : 0;

/** The next line with anything in it, or the last one that was looked at. */
function nextFilled(texts: string[], from: number): number {
  const found = texts.slice(from, from + 4).findIndex((line) => line.trim() !== '');
  return Math.min(texts.length - 1, from + Math.max(found, 0));
}

const unquoted = (line: string): string => line.replace(/^[\s>]{0,200}/, '');

/** Returns whether the next line with anything in it is quoted. */
function isQuoted(texts: string[], from: number): boolean {
  const next = texts.slice(from, from + 4).find((line) => line.trim() !== '');
  return next !== undefined && quote.test(next);
}
