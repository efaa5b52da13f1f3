/** Counts the steps that V8 goes back while it tries a pattern on a text: the same on every machine, however busy it is. */
import { setFlagsFromString } from 'node:v8';
import { signsOf } from './signs.ts';

setFlagsFromString('--allow-natives-syntax');
/** A pattern that gives up after so many steps back: it then finds nothing. */
const limited = new Function('source', 'flags', 'most', 'return %NewRegExpWithBacktrackLimit(source, flags, most)') as (
  source: string,
  flags: string,
  most: number,
) => RegExp;

const most = 2 ** 24;
/** A quadratic one takes at least twice as many for each sign of so many repetitions. */
const few_steps = 100;
const few_repeats = 400;
/** More than any bound of a repetition. */
const least_signs = 1_000;

/** Returns whether it goes back so few steps on a text that is searched through. */
function isWithin(source: string, flags: string, text: string, steps: number): boolean {
  // The end of the text is found at last, unless it gives up.
  return limited(`(?:${source})|(?![^])`, flags, steps).exec(text) !== null;
}

/** Single signs are repeated in a loop that goes back without counting; a choice is counted. */
function counted(source: string): string {
  const signs = signsOf(source);
  return signs
    .map((sign, at) => {
      const is_repeated = /^(?:[*+]|\{\d+(?:,\d*)?\})$/.test(signs[at + 1] ?? '') && !/^[()|?*+^$]$/.test(sign);
      const is_group = sign === ':' && signs[at - 1] === '?' && signs[at - 2] === '(';
      return is_repeated ? `(?:${sign}|(?!))` : is_group ? ':(?!)|' : sign;
    })
    .join('');
}

/** A text that is four times as long takes some four times as many steps. */
export function isLinear({ source, flags }: { source: string; flags: string }, prefix: string, unit: string): boolean {
  const pattern = counted(source);
  const own = flags.replace(/[gy]/g, '');
  const textOf = (repeats: number) => `${prefix}${unit.repeat(repeats)}\u0000`;
  const few = textOf(few_repeats);
  if (isWithin(pattern, own, few, few_steps * few.length)) return true;
  const repeats = Math.max(few_repeats, Math.ceil(least_signs / unit.length));
  const more = textOf(repeats);
  let steps = few_steps * more.length;
  while (!isWithin(pattern, own, more, steps)) {
    steps *= 2;
    if (steps > most) return false;
  }
  return isWithin(pattern, own, textOf(4 * repeats), 8 * steps);
}
