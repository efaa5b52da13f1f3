/** Ages, sizes and lists as the lines of the doctor say them. */

/** `45 seconds`, `12 minutes`, `5 hours`, `9 days`. */
export function ago(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return counted(whole, 'second');
  if (whole < 2 * 3_600) return counted(Math.round(whole / 60), 'minute');
  if (whole < 2 * 86_400) return counted(Math.round(whole / 3_600), 'hour');
  return counted(Math.round(whole / 86_400), 'day');
}

export const counted = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? noun : nouns}`;

const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];

/** `12 MB`, `1.5 GB`. */
export function size(bytes: number): string {
  const nth = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  const value = bytes / 1024 ** nth;
  return `${value < 10 && nth > 0 ? value.toFixed(1) : Math.round(value)} ${units[nth]}`;
}

const most_named = 5;

/** The first of them, and how many more there are. */
export function named(names: string[], most = most_named): string {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(', ')} and ${more} more` : names.join(', ');
}
