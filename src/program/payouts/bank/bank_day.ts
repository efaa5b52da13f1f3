/** Days on which banks pay. */

const day_ms = 86_400_000;
const isoDay = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** Holidays of TARGET, by which SEPA is settled, with a date of their own. */
const fixed_holidays = ['01-01', '05-01', '12-25', '12-26'];

/**
 * The day of a time (UTC), or the first day after it on which banks pay: no Saturday, no Sunday, and no holiday of TARGET. Banks move or refuse
 * an execution date on any other day.
 */
export function bankDay(at: string): string {
  let day = Date.parse(at.slice(0, 10));
  while (!isBankDay(day)) day += day_ms;
  return isoDay(day);
}

function isBankDay(day: number): boolean {
  const weekday = new Date(day).getUTCDay();
  if (weekday === 0 || weekday === 6) return false;
  const easter = easterSunday(new Date(day).getUTCFullYear());
  const [good_friday, easter_monday] = [easter - 2 * day_ms, easter + day_ms];
  return day !== good_friday && day !== easter_monday && !fixed_holidays.includes(isoDay(day).slice(5));
}

/** By the Gregorian computus of Meeus, Jones and Butcher. */
function easterSunday(year: number): number {
  const [a, b, c] = [year % 19, Math.floor(year / 100), year % 100];
  const g = Math.floor((8 * b + 13) / 25);
  const h = (19 * a + b - Math.floor(b / 4) - g + 15) % 30;
  const l = (32 + 2 * (b % 4) + 2 * Math.floor(c / 4) - h - (c % 4)) % 7;
  const m = Math.floor((a + 11 * h + 22 * l) / 451);
  const march_based = h + l - 7 * m + 114;
  return Date.UTC(year, Math.floor(march_based / 31) - 1, (march_based % 31) + 1);
}
