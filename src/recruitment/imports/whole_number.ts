/** Whole numbers as people and tools write them. Undefined for what may be two different numbers, and for what is none. */
export function wholeNumber(text: string): number | undefined {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (grouped.test(text)) return Number(text.replace(/\D/g, ''));
  const [, plain] = /^(\d+)[.,]0{1,2}$/.exec(text) ?? [];
  if (plain !== undefined) return Number(plain);
  const [, whole, part = '', unit] = /^(\d{1,6})(?:[.,](\d{1,2}))? ?(k|m)$/i.exec(text) ?? [];
  if (whole === undefined || unit === undefined) return undefined;
  const zeros = unit.toLowerCase() === 'k' ? 3 : 6;
  return Number(whole + part.padEnd(zeros, '0'));
}

/** `12.000` as well as `12,000`: what is counted has no fractions. The same sign stands between all groups. */
const grouped = /^[1-9]\d{0,2}([.,'’_ \u00a0\u202f\u2009])\d{3}(?:\1\d{3})*$/;
