import sql, { join, type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Filter } from '../../core/resource/list_query.ts';
import { timestampInput } from '../../core/values/fields.ts';
import { idTimePart } from '../../core/values/id.ts';
import { timeZone } from '../../core/values/time_zone.ts';

/** Days of a calendar, without a time zone: `first` is in it, `after` no longer. */
export interface Period {
  first: string;
  after: string;
}

/** The time zone of a report's or a list's days. */
export const timezone = timeZone.meta({
  description: 'The IANA time zone of days, weeks and months.',
  examples: ['America/New_York'],
});

/** A day, an ISO week or a month of the time zone. */
export const period = z
  .string()
  .refine(
    (text) => periodOf(text) !== undefined,
    'must be a day, an ISO week or a month, such as 2026-09-14, 2026-W38 or 2026-09',
  )
  .optional()
  .meta({
    description: 'A day, an ISO week or a month in `timezone`: `2026-09-14`, `2026-W38` or `2026-09`.',
    examples: ['2026-09-14'],
  });

/** The days of a period, or undefined where there is no such period between the years 1000 and 8999. */
export function periodOf(text: string): Period | undefined {
  const [, year, month, day] = /^([1-8]\d{3})-(\d{2})(?:-(\d{2}))?$/.exec(text) ?? [];
  if (day) return existing(dateOf(Number(year), Number(month), Number(day)), text, 1);
  if (month) {
    const first = dateOf(Number(year), Number(month), 1);
    return existing(first, `${text}-01`, daysFrom(first, dateOf(Number(year), Number(month) + 1, 1)));
  }
  const [, iso_year, week] = /^([1-8]\d{3})-W(\d{2})$/.exec(text) ?? [];
  return week === undefined ? undefined : isoWeek(Number(iso_year), Number(week));
}

/** The 4th of January is in the first week of an ISO year. */
function isoWeek(year: number, week: number): Period | undefined {
  const monday = (date: Date) =>
    dateOf(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  const first = monday(dateOf(year, 1, 4));
  const weeks = daysFrom(first, monday(dateOf(year + 1, 1, 4))) / 7;
  if (week < 1 || week > weeks) return undefined;
  first.setUTCDate(first.getUTCDate() + 7 * (week - 1));
  return existing(first, dayText(first), 7);
}

function existing(first: Date, text: string, days: number): Period | undefined {
  if (dayText(first) !== text) return undefined;
  return { first: text, after: dayText(new Date(first.getTime() + days * day_ms)) };
}

const day_ms = 86_400_000;
const dateOf = (year: number, month: number, day: number): Date => new Date(Date.UTC(year, month - 1, day));
const daysFrom = (first: Date, after: Date): number => Math.round((after.getTime() - first.getTime()) / day_ms);
const dayText = (date: Date): string => date.toISOString().slice(0, 10);

/** Returns the start of a day in a time zone. */
export const startOf = (day: string, zone: string): Sql => sql`program.local_start(${day}::date, ${zone})`;

/** The time at which reports count a list's rows. */
interface Time {
  at: Sql;
  /** Its name in the record. */
  name: string;
  /** The rows that reports count, and the sentence about them in the documentation. */
  counted?: { where: Sql; doc: string };
  /** The prefix of ids that begin with the same time, as far as clocks agree: rows are found by them. */
  id_prefix?: string;
}

/** Filters on the time of what a list holds, as reports have them: `from`, `to`, `period` and `timezone`. */
export function timeFilters(time: Time): Record<string, Filter> {
  const { name, counted } = time;
  const only = counted ? ` ${counted.doc}` : '';
  return {
    from: {
      schema: timestampInput
        .optional()
        .describe(`Returns only objects whose \`${name}\` is at or after this time.${only}`),
      where: (value: string) => within(time, sql`${value}::timestamptz`, undefined, { from: Date.parse(value) }),
    },
    to: {
      schema: timestampInput.optional().describe(`Returns only objects whose \`${name}\` is before this time.${only}`),
      where: (value: string) => within(time, undefined, sql`${value}::timestamptz`, { to: Date.parse(value) }),
    },
    period: {
      schema: period.describe(
        `Returns only objects whose \`${name}\` is in this day, ISO week or month of \`timezone\`: \`2026-09-14\`, \`2026-W38\` or \`2026-09\`.${only}`,
      ),
      where: (value: string, { timezone: zone = 'UTC' }: { timezone?: string }) => {
        const { first, after } = periodOf(value) as Period;
        const near = { from: Date.parse(first) - day_ms, to: Date.parse(after) + day_ms };
        return within(time, startOf(first, zone), startOf(after, zone), near);
      },
    },
    timezone: {
      schema: timezone.optional().describe('The IANA time zone of `period`. The default is UTC.'),
      where: () => sql`true`,
    },
  };
}

const hour_ms = 3_600_000;

/** `near`: the same bounds in milliseconds since 1970, give or take a day. */
function within(
  { at, counted, id_prefix }: Time,
  from: Sql | undefined,
  to: Sql | undefined,
  near: { from?: number; to?: number },
): Sql {
  const conditions = [
    ...(from ? [sql`${at} >= ${from}`] : []),
    ...(to ? [sql`${at} < ${to}`] : []),
    ...(counted ? [counted.where] : []),
    ...(id_prefix ? [idsWithin(id_prefix, near)] : []),
  ];
  return join(conditions, ' and ');
}

/** The largest difference between a service's clock, from which ids begin, and the database's, which rows have. */
const clock_difference_ms = hour_ms;

/** The ids in a stretch of time, and some around it: as constants, by which a plan leaves out partitions. */
export function idsWithin(prefix: string, { from, to }: { from?: number; to?: number }, id: Sql = sql`t.id`): Sql {
  const conditions = [
    ...(from === undefined ? [] : [sql`${id} >= ${firstId(prefix, from)}`]),
    ...(to === undefined ? [] : [sql`${id} < ${idAfter(prefix, to)}`]),
  ];
  return join(conditions, ' and ');
}

/** No id of a row of this time or later is before this one. */
export const firstId = (prefix: string, from: number): string => `${prefix}_${idTimePart(from - clock_difference_ms)}`;
/** The ids of all rows before this time are before this one. */
export const idAfter = (prefix: string, to: number): string => `${prefix}_${idTimePart(to + clock_difference_ms)}`;

const keyValue = z.string().min(1).max(2048);

/** Countries are kept in capitals, however they were sent. */
export const countryValue = z
  .string()
  .regex(/^([A-Za-z][A-Za-z0-9]|none)$/, 'must be 2 characters, such as DE, or none')
  .transform((code) => (code === 'none' ? code : code.toUpperCase()));

/** A filter by a column, whose value `none` is null. */
export const keyFilter = (column: Sql, description: string, value: z.ZodType<string> = keyValue): Filter => ({
  schema: value.optional().describe(`${description} \`none\`: without one.`),
  where: (value: string) => (value === 'none' ? sql`${column} is null` : sql`${column} = ${value}`),
});

/** A filter by the group that the partner of rows `t` is in today. */
export const groupFilter: Filter = {
  schema: z
    .string()
    .min(1)
    .optional()
    .describe('Returns only objects of partners who are in this group today. `none`: in no group.'),
  where: (value: string) => sql`exists (
    select from program.partner p
    where p.organization_id = t.organization_id and p.id = t.partner_id
      and ${value === 'none' ? sql`p.group_id is null` : sql`p.group_id = ${value}`})`,
};
