import { read } from '../words.ts';
import { sentences } from './sentences.ts';

/** The meaning of a text that consists of plain sentences alone. */
export interface Plain {
  /** To get no more mail. */
  wishes: boolean;
  /** True with insults, threats or a complaint. */
  is_angry: boolean;
}

type Part = 'wish' | 'beside' | 'angry';
interface Said {
  part: Part;
  is_rude: boolean;
}

/** Longer texts say more than that. */
const most_characters = 400;
const most_clauses = 12;

/** A grammar of one language. */
interface Grammar {
  idle: Set<string>;
  rude: Set<string>;
  joins: Set<string>;
  parts: [Part, RegExp[]][];
}

const grammars = Object.values(sentences).map(
  ({ idle, rude, joins, me, list, mail, wishes, beside, angry }): Grammar => {
    const compiled = (all: string[]): RegExp[] =>
      all.map((one) => {
        const source = one.replaceAll('{list}', list).replaceAll('{mail}', mail).replaceAll('{me}', me);
        return new RegExp(`^(?:${source})$`, 'u');
      });
    return {
      idle: new Set(idle.split(' ')),
      rude: new Set(rude.split(' ')),
      joins: new Set(joins.split(' ')),
      parts: [
        ['wish', compiled(wishes)],
        ['beside', compiled(beside)],
        ['angry', compiled(angry)],
      ],
    };
  },
);

/**
 * Reads a short text of which each clause is one of the plain sentences of a language: a wish to get no more mail about the writer, anger, or what stands
 * beside them. Undefined for any other: one clause that says something else, asks, denies or sets a condition is enough.
 */
export function readPlain(text: string): Plain | undefined {
  if (text.length > most_characters) return undefined;
  for (const grammar of grammars) {
    const said = saidIn(grammar, text);
    if (said.length > most_clauses || said.some((one) => one === undefined)) continue;
    const wishes = said.some((one) => one?.part === 'wish');
    const is_angry = said.some((one) => one?.part === 'angry' || one?.is_rude);
    if ((wishes || is_angry) && !(is_angry && text.search(smiles) >= 0)) return { wishes, is_angry };
  }
  return undefined;
}

const smiles = /[:;]-?[)DPp](?!\w)|(?![\u{1F595}\u{1F620}\u{1F621}\u{1F92C}\u{1F44E}])\p{Extended_Pictographic}/gu;

interface Clause {
  words: string[];
  is_asked: boolean;
}

/** Splits a text at signs and joining words. */
function clausesOf(text: string, joins: ReadonlySet<string>): Clause[] {
  const parted = text
    .replace(/\S{1,100}@\S{1,100}/g, ' <mail> ')
    .replace(/\be[- ]?(?=mail)/giu, '')
    .replace(smiles, ' ')
    .replace(/[,;:()–—"“”„]|\s-\s/g, '\n');
  return read(parted).sentences.flatMap(({ words, end }) => {
    const parts: string[][] = [[]];
    for (const { word } of words)
      if (joins.has(word)) parts.push([]);
      else parts.at(-1)?.push(word);
    return parts.filter(({ length }) => length > 0).map((part) => ({ words: part, is_asked: end === '?' }));
  });
}

/** Asked for politely, and not whether. */
const request =
  /^(?:(?:can|could|would|will) (?:you|u)|(?:konnen|konnten|konnt|konntet|kannst|wurden|wurdet) (?:sie|ihr|du)|(?:pouvez|pourriez|peux|pourrais)|(?:me |nos )?(?:podrian|podeis|podriais|pueden|podria|puede)|(?:mi )?(?:potete|potreste|puo|potrebbe|puoi)|(?:podem|poderiam|pode|poderia))\b/u;

function saidIn({ idle, rude, joins, parts }: Grammar, text: string): (Said | undefined)[] {
  const clauses = clausesOf(text, joins);
  return clauses.map(({ words, is_asked }, at) => {
    const kept = words.filter((word) => !idle.has(word));
    const civil = kept.filter((word) => !rude.has(word));
    const said = [civil, kept, words].map((some) => some.join(' '));
    const found = parts.find(([, patterns]) => said.some((one) => patterns.some((pattern) => pattern.test(one))));
    const part = found?.[0] ?? (civil.length === 0 || isName(clauses, at) ? 'beside' : undefined);
    const is_asking = is_asked && civil.length > 0 && !(part === 'wish' && request.test(said[0] as string));
    return part === undefined || is_asking ? undefined : { part, is_rude: civil.length < kept.length };
  });
}

const greets = /^(?:hi|hello|hey|dear|hallo|moin|liebe[rs]?|bonjour|hola|ciao|salve|gentile|ola|oi|caro|cara)$/;
const thanks =
  /\b(?:thanks?|thx|cheers|regards|wishes|danke|dank|gr[ue]+ss\w*|merci|cordialement|gracias|saludos?|grazie|saluti|obrigad[oa]|cumprimentos)\b/;

/** Returns whether a clause is the name of whom a text greets at its beginning, or of who thanks at its end. */
function isName(clauses: Clause[], at: number): boolean {
  const { words } = clauses[at] as Clause;
  if (at === 0 && clauses.length > 1) return words.length <= 4 && greets.test(words[0] as string);
  return (
    at > 0 && at === clauses.length - 1 && words.length <= 3 && thanks.test(clauses[at - 1]?.words.join(' ') ?? '')
  );
}
