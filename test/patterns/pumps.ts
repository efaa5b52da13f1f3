import type { Pattern } from './collect.ts';

const length = 100_000;
const sign = /\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|[\s\S]/gu;
const few = 12;

/** A long text of one unit, again and again, that ends with what no pattern expects. */
export const pump = (unit: string): string => `${unit.repeat(Math.ceil(length / unit.length))}\u0000`;

/** What a pattern speaks of: its signs, its words, and both together. */
export function unitsOf({ source }: Pattern): string[] {
  const words = [...new Set(source.match(/[\p{L}\p{N} :<>@./=-]{2,}/gu) ?? [])].slice(0, few);
  const signs = [...new Set((source.match(sign) ?? []).flatMap(samplesOf))].slice(0, few);
  const joined = words.slice(0, 4).flatMap((word) => signs.slice(0, 4).map((one) => word + one));
  return [...signs, ...words, ...joined];
}

function samplesOf(one: string): string[] {
  if (/^\\[sS]$/.test(one) || one === ' ') return [' ', '\t'];
  if (/^\\[dwDW]$/.test(one)) return ['1', '-'];
  if (one === '.') return ['a', '-'];
  if (one.startsWith('[')) return ['a', '-', ' ', one.at(1) as string];
  if (one.startsWith('\\')) return /\\[^a-zA-Z0-9]/.test(one) ? [one.slice(1)] : [];
  return /[()|?*+^${}]/.test(one) ? [] : [one];
}
