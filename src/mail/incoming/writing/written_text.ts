import { withShortLines } from '../message/short_lines.ts';
import { findFooter, isBareWish, isFooterAlone } from './footers.ts';
import { beginsHeader } from './header_lines.ts';
import { readHelpDesk } from './help_desk.ts';
import { linksOf, readHtml } from './html.ts';
import { type Kind, type Line, readLines } from './lines.ts';
import { findClosing } from './signatures.ts';

export interface Written {
  /** The newly written text, without quotes and signatures. Quotes stay where answers stand between them. */
  text: string;
  /** The writer's own sentences alone: no quoted line, no closing, no name, no line of links. This is what is classified. */
  own_words: string;
  /** It says nothing but what companies append to every mail. */
  is_footer: boolean;
  /** A help desk sent what a person wrote. */
  from_help_desk: boolean;
}

/** More is neither kept nor classified. */
const most_text = 100_000;

/** Reads the text that the writer of a mail added. HTML is read where a mail has no text. */
export function readWritten({ text, html }: { text: string; html: string }): Written {
  const reads_html = isStub(text) && html !== '';
  const source = normalize((reads_html ? withShortLines(readHtml(html)) : text).slice(0, most_text));
  const by_agent = readHelpDesk(source);
  const kept = trimmed(cutQuotes(cutAtDelimiter(readLines(by_agent ?? source))));
  const lines = withoutFooter(reads_html ? kept : withLinks(kept, html));
  const end = findClosing(lines.map((line) => line.text));
  const shown = end ? lines.slice(0, end.contact) : lines;
  const is_footer = isFooterAlone(lines.map((line) => line.text));
  const own_words = is_footer
    ? ''
    : joined((end ? lines.slice(0, end.closing) : lines).filter(isOwn)) || joined(shown.filter(isOwn));
  return { text: joined(shown), own_words, is_footer, from_help_desk: by_agent !== undefined };
}

const isOwn = ({ kind, linked }: Line): boolean => kind !== 'quote' && !linked;

/** Programs that make the text of a mail from its HTML leave out where links lead. */
function withLinks(lines: Line[], html: string): Line[] {
  if (html === '' || !lines.some(({ text }) => isBareWish(text))) return lines;
  const links = linksOf(html);
  return lines.map((line) => (links.has(line.text) ? { ...line, linked: true } : line));
}

/** A text part that says nothing of its own: where to read the letter, that the program cannot show it. */
const stub =
  /^\W{0,5}(?:(?:this|the|your) (?:e-?mail|message|mail)\b.{0,60}(?:\bhtml\b|view(?:ed|er)|cannot be displayed|can(?:not|'t) be (?:read|shown))|(?:to view|if you (?:cannot|can't|can not) (?:view|read|see)|please (?:view|use|enable|open)|view (?:this|the) (?:e-?mail|message))\b.{0,100}(?:\bhtml\b|browser|online|version)|your (?:e-?mail|mail) (?:client|program|reader)\b.{0,100}|html (?:e-?mail|message|only|version)|this is (?:an? )?(?:html|multi-?part|mime)\b.{0,100}|diese (?:e-?mail|nachricht)\b.{0,80}\bhtml\b|(?:ce (?:message|courriel|mail)|cet e-?mail)\b.{0,80}\bhtml\b|este (?:correo|mensaje|e-?mail)\b.{0,80}\bhtml\b|quest[ao] (?:e-?mail|messaggio)\b.{0,80}\bhtml\b|esta mensagem\b.{0,80}\bhtml\b|\[(?:image|cid|html)\b[^\]]{0,80}\]\W{0,5}$|no text (?:part|version|content)|plain[- ]text version)/iu;

/** Short, and with a sentence of that kind: a letter that begins with one and goes on is a letter. */
const isStub = (text: string): boolean => {
  const said = text.trim();
  return (
    said === '' ||
    !/[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(said) ||
    (said.length < 300 && said.split('\n').length <= 4 && stub.test(said))
  );
};

const joined = (lines: Line[]): string =>
  lines
    .map((line) => line.text)
    .join('\n')
    .trim();

/** An attribution on the line of the answer, as some programs put it. */
const shared_line =
  /^([^>\s\n][^\n]{0,200}?)[ -]{1,5}(On (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|\d)[^\n]{8,150} wrote:)(?=\n{1,2}>)/gmu;

/** Blanks at the ends of lines, invisible signs and tabs make no difference; more than two empty lines are two. */
const normalize = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/[\u200B-\u200D\u2060\uFEFF\u00AD]/g, '')
    .replace(/\u00A0/g, ' ')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(shared_line, '$1\n$2')
    .replace(/\n{4,}/g, '\n\n\n');

/** Cuts at the delimiter of a signature. A line of dashes at the top, with no text before it, is none. */
function cutAtDelimiter(lines: Line[]): Line[] {
  const end = lines.findIndex(
    ({ kind }, at) => kind === 'delimiter' && lines.slice(0, at).some((line) => line.kind === 'text'),
  );
  const kept = end < 0 ? lines : lines.slice(0, end);
  return kept.filter(({ kind }) => kind !== 'delimiter' && kind !== 'mobile');
}

/** Decides by the order of what is quoted and what is written: below it, above it, or between. */
function cutQuotes(input: Line[]): Line[] {
  const lines = withoutHeader(input);
  const first = lines.findIndex(({ kind }) => kind === 'attribution');
  if (first < 0) return withoutTrailingQuote(lines);
  const has_text = (part: Line[]): boolean => part.some(({ kind }) => isWritten(kind));
  const before = lines.slice(0, first);
  const rest = lines.slice(first);
  const quotes = rest.some(({ kind }) => kind === 'quote');
  if (has_text(before)) {
    if (!quotes || !answersBelow(rest)) return withoutTrailingQuote(before);
    return withoutAttributions(withoutTrailingQuote(lines));
  }
  if (!quotes) return before;
  return isOneRun(rest)
    ? trimmed(withoutAttributions(afterQuote(rest)))
    : withoutAttributions(withoutTrailingQuote(lines));
}

const isWritten = (kind: Kind): boolean => kind === 'text' || kind === 'header';

/** A header of a quoted mail, and all behind it. */
function withoutHeader(lines: Line[]): Line[] {
  const texts = lines.map((line) => line.text);
  const at = lines.findIndex(
    ({ kind }, index) => (kind === 'header' || kind === 'quote') && beginsHeader(texts, index),
  );
  return at < 0 ? lines : withoutTrailingQuote(lines.slice(0, at));
}

/** A link is seen as a text shows it, with an address beside its words. */
const withoutFooter = (lines: Line[]): Line[] =>
  trimmed(
    lines.slice(
      0,
      findFooter(lines.map(({ text, kind, linked }) => (kind === 'quote' ? '>' : linked ? `${text} https://` : text))),
    ),
  );

/** Everything quoted at the end, where something was written at all. */
function withoutTrailingQuote(lines: Line[]): Line[] {
  const last = lines.findLastIndex(({ kind }) => isWritten(kind));
  return lines.slice(0, last + 1);
}

/** The blank line above an attribution stays, the one below goes with it. */
function withoutAttributions(lines: Line[]): Line[] {
  return lines.filter(({ kind }) => kind !== 'attribution');
}

/** Answers between quotes, or a sentence below a quote; a name below it is a signature. */
function answersBelow(rest: Line[]): boolean {
  const runs = runsOf(rest);
  const written = runs.filter(({ kind }) => kind === 'text');
  if (written.length >= 2) return true;
  const [only] = written;
  if (!only) return false;
  if (runs.at(-1) !== only) return true;
  return only.lines.length >= 7 || only.lines.some((line) => isSentence(line.text));
}

const isSentence = (line: string): boolean => line.trim().split(/\s+/).length >= 3 && /[.?!…]["')\]]?\s*$/.test(line);

/** The quote comes first and one answer follows it. */
const isOneRun = (rest: Line[]): boolean =>
  runsOf(rest).filter(({ kind }) => kind === 'text').length === 1 &&
  runsOf(rest).at(-1)?.kind === 'text' &&
  rest.findIndex(({ kind }) => isWritten(kind)) > rest.findIndex(({ kind }) => kind === 'quote');

const afterQuote = (rest: Line[]): Line[] => rest.slice(rest.findIndex(({ kind }) => isWritten(kind)));

/** Runs of written and of quoted lines, blank lines aside. */
function runsOf(lines: Line[]): { kind: 'text' | 'quote'; lines: Line[] }[] {
  const runs: { kind: 'text' | 'quote'; lines: Line[] }[] = [];
  for (const line of lines) {
    if (line.kind === 'blank' || line.kind === 'attribution') continue;
    const kind = isWritten(line.kind) ? 'text' : 'quote';
    const last = runs.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else runs.push({ kind, lines: [line] });
  }
  return runs;
}

function trimmed(lines: Line[]): Line[] {
  const begin = lines.findIndex(({ kind }) => kind !== 'blank');
  const end = lines.findLastIndex(({ kind }) => kind !== 'blank');
  return begin < 0 ? [] : lines.slice(begin, end + 1);
}
