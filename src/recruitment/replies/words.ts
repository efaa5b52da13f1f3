/** The parts of a text that are read: its beginning and its end, so that a mail of any size takes a bounded time. */
const most_at_start = 6_000;
const most_at_end = 2_000;
/** The longest line that is taken as ended by its writer and not by a mail program that wraps at 72 columns or more. */
const longest_short_line = 58;

/** A word in its normal form: lower case, no accents, no apostrophe. */
export interface Word {
  word: string;
  /** In lower case, with its accents. */
  written: string;
  /** Written with a capital although no sentence begins here: in most languages a name. */
  capital: boolean;
}
export interface Sentence {
  words: Word[];
  end: '.' | '?' | '!';
}
/** A text as `classify.ts` reads it. */
export interface Reading {
  sentences: Sentence[];
  /** Share of capitals among the letters. */
  shouted: number;
  question_marks: number;
  exclamation_marks: number;
}

const mail_address = String.raw`[\p{L}\d_.+-]{1,64}@[\p{L}\d-]{1,63}(?:\.[\p{L}\d-]{1,63}){1,8}`;
const pattern = new RegExp(
  [
    `(?<mail>${mail_address})`,
    String.raw`(?<url>https?:\/\/[^\s<>]{1,500}|www\.[^\s<>]{1,500})`,
    String.raw`(?<money>[$€£]\s?\d[\d.,]{0,12}|\d[\d.,]{0,12}\s?(?:[$€£]|(?:eur|usd|gbp|euros?|bucks|dollars|pounds)\b))`,
    String.raw`(?<percent>\d[\d.,]{0,12}\s?%)`,
    String.raw`(?<number>\d[\d.,:]{0,20}(?:st|nd|rd|th|er|h)?)`,
    String.raw`(?<word>[\p{L}\p{M}]{1,60}(?:['’‘´\x60][\p{L}]{1,30}){0,3})`,
    String.raw`(?<smile>[:;]-?[)(DPp](?!\w)|<3|\p{Extended_Pictographic})`,
    String.raw`(?<end>[.?!…]{1,50}|\n)`,
    '(?<opening>[¿¡])',
  ].join('|'),
  'giu',
);

/** Reads a text into sentences of words; takes any string. */
export function read(text: string): Reading {
  const short = shortened(text).normalize('NFKC').replace(/\r\n?/g, '\n');
  const sentences: Sentence[] = [];
  let words: Word[] = [];
  const close = (end: Sentence['end']) => {
    const last = sentences.at(-1);
    if (words.length > 0) sentences.push({ words, end });
    else if (last && end !== '.') last.end = end;
    words = [];
  };
  for (const line of unwrapped(short)) {
    for (const match of line.matchAll(pattern)) {
      const groups = match.groups as Record<string, string | undefined>;
      if (groups.end !== undefined) close(endOf(groups.end));
      else words.push(...wordsOf(groups, words.length > 0));
    }
    close('.');
  }
  // A text of question marks alone is a question all the same.
  if (sentences.length === 0 && short.trim() !== '') {
    sentences.push({ words: [], end: short.includes('?') ? '?' : '.' });
  }
  return { sentences, ...countsOf(short) };
}

function shortened(text: string): string {
  if (text.length <= most_at_start + most_at_end) return text;
  return `${text.slice(0, most_at_start)}\n\n${text.slice(-most_at_end)}`;
}

/** Lines as their writer meant them: a long line goes on in the next one. */
function unwrapped(text: string): string[] {
  const lines: string[] = [];
  let open = '';
  for (const line of text.split('\n')) {
    const wraps = line.length > longest_short_line && !/[.?!…:]\s*$/.test(line);
    open += `${open === '' ? '' : ' '}${line}`;
    if (wraps) continue;
    lines.push(open);
    open = '';
  }
  return open === '' ? lines : [...lines, open];
}

const endOf = (marks: string): Sentence['end'] => (marks.includes('?') ? '?' : marks.includes('!') ? '!' : '.');

function wordsOf(groups: Record<string, string | undefined>, inside: boolean): Word[] {
  for (const sign of ['mail', 'url', 'money', 'percent', 'number'])
    if (groups[sign] !== undefined) return [wordOf(`<${sign}>`)];
  if (groups.smile !== undefined) return [wordOf(groups.smile.replace('-', ''))];
  if (groups.word === undefined) return [];
  const capital = inside && /^\p{Lu}\p{Ll}/u.test(groups.word);
  return partsOf(groups.word).map((written) => wordOf(written, capital));
}

const wordOf = (written: string, capital = false): Word => ({ word: plain(written), written, capital });

/** `don't` is one word, `l'idée` two: an English ending stays with its word. */
function partsOf(word: string): string[] {
  return word
    .toLowerCase()
    .replace(/['’‘´`](?=(?:t|s|m|re|ve|ll|d)$)/g, '')
    .split(/['’‘´`]/)
    .filter((part) => plain(part) !== '')
    .map((word) => word.replace(/(\p{L})\1{2,}/gu, '$1'));
}

/** The words of a text that consist of letters alone. */
export const wordsWithin = (reading: Reading): Word[] =>
  reading.sentences.flatMap(({ words }) => words.filter(({ word }) => /^\p{L}+$/u.test(word)));

/** A text in lower case and without accents. */
export function plain(text: string): string {
  return text
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/ß/g, 'ss')
    .replace(/ø/g, 'o')
    .replace(/ł/g, 'l');
}

function countsOf(text: string): Omit<Reading, 'sentences'> {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  const capitals = text.match(/\p{Lu}/gu)?.length ?? 0;
  return {
    shouted: letters < 4 ? 0 : capitals / letters,
    question_marks: text.match(/[?？]/g)?.length ?? 0,
    exclamation_marks: text.match(/!/g)?.length ?? 0,
  };
}
