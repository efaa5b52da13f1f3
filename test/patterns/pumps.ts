/** Texts that a pattern may be slow on: what it repeats, again and again, behind what it wants before that. */
import type { Pattern } from './collect.ts';
import { signsOf } from './signs.ts';

export interface Pump {
  prefix: string;
  unit: string;
}

const candidates = [...' a1-.A"<@\té日\n,:;_/x0\'>=*+&%#|[]()^`~!?\u00a0'];
const most_units = 3;
const most_of_group = 12;
const most_pumps = 60;
const unbounded = /^(?:[*+]|\{\d+,\})$/;
const few = 8;

/** One sign or word of the pattern, and what each of its repetitions takes, in its place. */
export function pumpsOf({ source, flags }: Pattern): Pump[] {
  const pumps: Pump[] = [];
  explore(signsOf(source), '', (prefix, unit) => pumps.push({ prefix, unit }), flags.includes('u') ? 'u' : '');
  const words = [...new Set(source.match(/[\p{L}\p{N} :<>@./=-]{2,}/gu) ?? [])].slice(0, few);
  for (const unit of [' ', 'a', '-', ...words, ...words.slice(0, 4).flatMap((word) => [`${word} `, `${word}-`])])
    pumps.push({ prefix: '', unit });
  const all = new Map(pumps.filter(({ unit }) => unit !== '').map((one) => [JSON.stringify(one), one]));
  return [...all.values()].slice(0, most_pumps);
}

type Tell = (prefix: string, unit: string) => void;

/** Tells of each repetition without a bound. @returns a text that each alternative takes */
function explore(signs: string[], prefix: string, tell: Tell, flags: string): string[] {
  return alternativesOf(signs).map((alternative) => {
    let text = '';
    for (let at = 0; at < alternative.length; at++) {
      const end = endOf(alternative, at);
      const group = alternative.slice(at, end + 1);
      const is_repeated = unbounded.test(alternative[end + 1] ?? '');
      if (group[0] === '(') {
        const inner = explore(contentOf(group), prefix + text, tell, flags);
        const signs_within = is_repeated ? contentOf(group).flatMap((each) => samplesOf(each, flags)) : [];
        if (is_repeated)
          for (const unit of [...inner, ...signs_within].slice(0, most_of_group)) tell(prefix + text, unit);
        if (!isLookaround(group)) text += inner[0] ?? '';
      } else {
        const units = samplesOf(group[0] as string, flags);
        if (is_repeated) for (const unit of units) tell(prefix + text, unit);
        text += units[0] ?? '';
      }
      at = end;
    }
    return text;
  });
}

/** The end of the group that begins there; of what is no group, itself. */
function endOf(signs: string[], at: number): number {
  let depth = 0;
  for (let end = at; end < signs.length; end++) {
    if (signs[end] === '(') depth += 1;
    if (signs[end] === ')') depth -= 1;
    if (depth <= 0) return end;
  }
  return signs.length - 1;
}

function alternativesOf(signs: string[]): string[][] {
  const found: string[][] = [[]];
  for (let at = 0; at < signs.length; at++) {
    const end = endOf(signs, at);
    if (signs[at] === '|') found.push([]);
    else found.at(-1)?.push(...signs.slice(at, end + 1));
    at = end;
  }
  return found;
}

const isLookaround = (group: string[]): boolean => /^\(\?<?[=!]/.test(group.join(''));

/** Without `(?:`, `(?<name>` and the like. */
function contentOf(group: string[]): string[] {
  const opening = /^\((?:\?(?:[:=!]|<[=!]|<\w+>|[a-z-]+:))?/.exec(group.slice(0, -1).join(''))?.[0] ?? '(';
  return group.slice([...opening].length, -1);
}

/** Returns characters that one sign of a pattern accepts. */
function samplesOf(sign: string, flags: string): string[] {
  if (/^(?:[*+?^$)|]|\{\d+(?:,\d*)?\}|\\[bB1-9]|\\k<.*>|\(|\|)$/.test(sign)) return [];
  if (!/^[\\[.]/.test(sign)) return [sign];
  const own = [...sign].filter((each) => !/[\\[\]^-]/.test(each));
  const pattern = new RegExp(`^${sign}$`, flags);
  return [...candidates, ...own].filter((each) => pattern.test(each)).slice(0, most_units);
}
