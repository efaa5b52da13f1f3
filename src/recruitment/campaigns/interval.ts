/** How certain a rate is, and which text won: pure values. */

/** Of the normal distribution, for 95%. */
const z = 1.959_963_985;

export interface Interval {
  low: number;
  high: number;
}

/** The 95% confidence interval of a rate by Wilson's score, which holds for small numbers too. Null: nothing was counted. */
export function wilson(hits: number, of: number): Interval | null {
  if (of === 0) return null;
  const rate = hits / of;
  const scale = 1 + z ** 2 / of;
  const middle = (rate + z ** 2 / (2 * of)) / scale;
  const half = (z * Math.sqrt((rate * (1 - rate)) / of + z ** 2 / (4 * of ** 2))) / scale;
  return { low: hits === 0 ? 0 : middle - half, high: hits === of ? 1 : middle + half };
}

/** The text whose interval is above those of all the others. Null: they overlap, or there is one text alone. */
export function winnerOf(intervals: (Interval | null)[]): number | null {
  if (intervals.length < 2 || intervals.includes(null)) return null;
  const known = intervals as Interval[];
  const winner = known.findIndex(({ low }, nth) => known.every((other, at) => at === nth || low > other.high));
  return winner === -1 ? null : winner;
}
