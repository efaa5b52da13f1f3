/** A time span in the width of a column: `45 s`, `12 min`, `5 h`, `9 d`. One that is to come: `in 45 s`. */
export function age(seconds: number): string {
  if (seconds < 0) return `in ${age(-seconds)}`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 2 * 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

const seconds_of: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 };

/** The seconds of `90s`, `10m`, `12h`, `7d`; undefined where it is none of these. */
export function secondsIn(text: string): number | undefined {
  const [, count = '', unit = ''] = /^(\d{1,6})\s?(s|m|min|h|d)$/.exec(text) ?? [];
  return unit === '' ? undefined : Number(count) * (seconds_of[unit] as number);
}
