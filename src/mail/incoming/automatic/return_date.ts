import { day_pattern, days, month_pattern, months } from './month_names.ts';

/** A day of the calendar; the year is missing where the text leaves it out. */
interface Day {
  year?: number;
  month: number;
  day: number;
  /** The position in the text. */
  at: number;
  end: number;
}

const ordinal = '(?:st|nd|rd|th|er|re|ere|eme|º|ª|°|o|a)?';
const of = '(?:\\s+(?:of|de|del|di|do)\\s+|[\\s.,-]+)';
const year = '(?:(?:,|\\.|\\s+(?:de|del))?\\s*((?:19|20)\\d\\d)(?!\\d))?';

/** `12 June 2025`, `1er septembre`, `3. Juni`, `1 de agosto de 2025`. */
const day_month = new RegExp(`\\b(\\d{1,2})${ordinal}\\.?${of}(${month_pattern})\\b\\.?${year}`, 'g');
/** `June 12th, 2025`, `May 19`. */
const month_day = new RegExp(
  `\\b(${month_pattern})\\b\\.?\\s+(?:the\\s+)?(\\d{1,2})(?:st|nd|rd|th)?\\b(?!\\s*:)(?:,?\\s*((?:19|20)\\d\\d)\\b)?`,
  'g',
);
/** `January 2026`, `im Januar`, without a day: its first. */
const month_alone = new RegExp(
  `\\b(?:in|im|en|a|em|until|til|till|back in|return in)\\s+(?:early |anfang |debut |principios de |inizio )?(${month_pattern})\\b\\.?(?!\\s*\\d{1,2}\\b)(?:\\s+(?:de\\s+)?((?:19|20)\\d\\d))?`,
  'g',
);
/** `2025-08-04`, `04.08.2025`, `4/8/25`, `04.08.`. */
const iso = /\b((?:19|20)\d\d)-(\d{1,2})-(\d{1,2})\b/g;
const numeric = /\b(\d{1,2})([./-])(\d{1,2})(?:\2((?:19|20)\d\d|\d\d)?(?!\d)|(?!\.?\d|[/-]))/g;

/** Words before a day that say that the absence ends there (`until`), or that the person is back then (`back`). */
const until =
  /(?:\b(?:until|till?|through|thru|to|up to|ending|bis|bis zum|einschliesslich|jusqu.?au|jusqu.?a|au|hasta|hasta el|al|fino al|fino a|sino al|ate|ate ao?|ate ao? dia|tot|tot en met|t\/m|inclu[a-z]*)|[–—-])\s*(?:and including |including |(?:the |le |el |il |den |dem |zum |einschliesslich |inklusive |inclus |o |ao )|dia ){0,4}$/;
const back =
  /(?:\b(?:back|return\w*|resum\w*|reopen\w*|again from|available (?:again )?(?:from|on)|retour|reviens|reprend\w*|rentr\w*|wieder|zuruck|ruckkehr|erreichbar (?:ab|am)|regres\w*|vuelv\w*|vuelta|reincorpor\w*|rientr\w*|torn\w*|ritorn\w*|volt\w*|retorn\w*|tillbaka|terug|answer messages again))\b[^.!?\n]{0,60}$/;
const inclusive_after =
  /^\s*(?:(?:,\s*)?(?:inclusive|inclusief|included|einschliesslich|inkl|inclus|incluid[oa]|incluso|compreso|inclusive))/;

/**
 * The day that an automatic reply names as the return, else as the end of the absence, as an ISO date. A day without a year is the next one
 * after the mail was sent. Null where the text names none, or only days long past or far away.
 */
export function readReturnDate(text: string, sent: Date): string | null {
  const words = plain(text.slice(0, 4_000));
  const found = [...daysIn(words, sent), ...weekdaysIn(words, sent)].flatMap((day) => {
    const date = dateOf(day, sent);
    return date && isNear(date, sent) ? [{ date, role: roleOf(words, day) }] : [];
  });
  const returning = found.find(({ role }) => role === 'back');
  const ends = found.filter(({ role }) => role === 'until').map(({ date }) => date.getTime());
  if (returning) return toIso(returning.date);
  return ends.length > 0 ? toIso(new Date(Math.max(...ends))) : null;
}

/** Accents and ß are left out: people leave them out too. */
const plain = (text: string): string =>
  text.replaceAll('ß', 'ss').normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().replace(/[’`´]/g, "'");

function roleOf(words: string, { at, end }: Day): 'back' | 'until' | undefined {
  const before = words
    .slice(Math.max(0, at - 90), at)
    .replace(new RegExp(`(?:\\b${day_pattern}\\b[.,]?\\s*(?:(?:den |the |le |el |il |,)\\s*)?)$`), '');
  if (until.test(before) || inclusive_after.test(words.slice(end, end + 20))) return 'until';
  return back.test(before) ? 'back' : undefined;
}

function daysIn(words: string, now: Date): Day[] {
  const at = (found: RegExpExecArray) => ({ at: found.index, end: found.index + found[0].length });
  const found: (Day | undefined)[] = [
    ...[...words.matchAll(iso)].map((m) => day(m[1], m[2], m[3], at(m))),
    ...[...words.matchAll(day_month)].map((m) => day(m[3], months.get(m[2] as string), m[1], at(m))),
    ...[...words.matchAll(month_day)].map((m) => day(m[3], months.get(m[1] as string), m[2], at(m))),
    ...[...words.matchAll(numeric)].map((m) => numericDay(m, words, now, at(m))),
    ...[...words.matchAll(month_alone)].map((m) => withoutDay(m, at(m))),
  ];
  return withoutOverlaps(found.filter((one) => one !== undefined));
}

function withoutDay(found: RegExpExecArray, place: { at: number; end: number }): Day | undefined {
  const name = found[1] as string;
  const at = place.at + found[0].indexOf(name);
  return day(found[2], months.get(name), 1, { at, end: place.end });
}

const withoutOverlaps = (found: Day[]): Day[] =>
  found.filter((one, index) => !found.slice(0, index).some((other) => one.at < other.end && other.at < one.end));

function day(
  year: string | undefined,
  month: string | number | undefined,
  number: string | number | undefined,
  place: { at: number; end: number },
): Day | undefined {
  const [m, d] = [Number(month), Number(number)];
  if (!(m >= 1 && m <= 12 && d >= 1 && d <= 31)) return undefined;
  return {
    month: m,
    day: d,
    ...place,
    ...(year === undefined ? {} : { year: year.length === 2 ? 2000 + Number(year) : Number(year) }),
  };
}

/** Day before month, as all but Americans write; with slashes in an English text the month comes first, unless it cannot. */
function numericDay(
  found: RegExpExecArray,
  words: string,
  now: Date,
  place: { at: number; end: number },
): Day | undefined {
  const [, first = '', separator, second = '', of_year] = found;
  if (separator === '-' && of_year === undefined) return undefined;
  const european = day(of_year, second, first, place);
  const american = day(of_year, first, second, place);
  if (separator !== '/' || !american || !european) return european ?? american;
  if (!isEnglish(words)) return european;
  return nearest(american, european, now);
}

const isEnglish = (words: string): boolean => /\b(?:the|and|back|will|from|until|vacation|out of)\b/.test(words);

/** Chooses between two readings: the one that comes soon after the mail; where both do, the American one. */
function nearest(american: Day, european: Day, now: Date): Day {
  const until_then = (one: Day): number => (dateOf(one, now)?.getTime() ?? 0) - now.getTime();
  const soon = 60 * 86_400_000;
  const fits = (one: Day): boolean => until_then(one) > -86_400_000 && until_then(one) < soon;
  return fits(american) || !fits(european) ? american : european;
}

/** `back on Monday`: the next one. */
function weekdaysIn(words: string, now: Date): Day[] {
  const pattern = new RegExp(
    `\\b(${day_pattern})\\b(?![.,]?\\s*(?:(?:den |the |le |el |il |,)\\s*)?(?:\\d|${month_pattern}\\b))`,
    'g',
  );
  return [...words.matchAll(pattern)].map((found) => {
    const ahead = ((days.get(found[1] as string) as number) - isoDay(now) + 7) % 7 || 7;
    const date = addDays(now, ahead);
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      at: found.index,
      end: found.index + found[0].length,
    };
  });
}

const isoDay = (date: Date): number => date.getUTCDay() || 7;

/** Undefined for the 31st of a month of 30 days. */
function dateOf({ year, month, day: number }: Day, now: Date): Date | undefined {
  const in_year = (of: number): Date => new Date(Date.UTC(of, month - 1, number));
  const this_year = in_year(year ?? now.getUTCFullYear());
  if (this_year.getUTCMonth() !== month - 1) return undefined;
  if (year !== undefined) return this_year;
  const long_past = this_year.getTime() < addDays(now, -45).getTime();
  return long_past ? in_year(now.getUTCFullYear() + 1) : this_year;
}

const isNear = (date: Date, now: Date): boolean =>
  date.getTime() >= addDays(now, -2).getTime() && date.getTime() <= addDays(now, 550).getTime();

const addDays = (date: Date, count: number): Date =>
  new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + count));
const toIso = (date: Date): string => date.toISOString().slice(0, 10);
