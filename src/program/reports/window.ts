import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Period, periodOf, startOf } from '../programs/period.ts';

export const intervals = ['day', 'week', 'month'] as const;
export type Interval = (typeof intervals)[number];

export interface WindowQuery {
  from: string;
  to: string;
  timezone: string;
  period?: string | undefined;
  compare: 'previous' | 'none';
}

/** A stretch of time as ISO 8601; `to` is no longer part of it. */
export interface Window {
  from: string;
  to: string;
}

export interface Windows {
  current: Window;
  previous: Window | undefined;
}

/** A day, week or month, less what is outside of its window. */
export interface Interval_ extends Window {
  period: string;
}

/**
 * The window, less what is outside of `period`, and the one before it: of as many local days where both bounds are local midnights, else of
 * the same length.
 * @throws Problem invalid_parameter for a time zone that the database does not know
 */
export async function windowsOf(tx: Tx, { from, to, period, timezone, compare }: WindowQuery): Promise<Windows> {
  const { first, after } = period === undefined ? { first: undefined, after: undefined } : (periodOf(period) as Period);
  const found = await inZone(
    timezone,
    tx.one<Window & { before: string }>(sql`
      with bounds as (
        select b.from, greatest(b.from, least(${to}::timestamptz(3), ${first ? startOf(after as string, timezone) : sql`null`})) as to
        from (select least(greatest(${from}::timestamptz(3), ${first ? startOf(first, timezone) : sql`null`}), ${to}::timestamptz(3)) as from) as b
      ),
      days as (
        select b.from, b.to, (b.from at time zone ${timezone})::date as first, (b.to at time zone ${timezone})::date as after
        from bounds b
      )
      select
        d.from, d.to,
        case
          when program.local_start(d.first, ${timezone}) = d.from and program.local_start(d.after, ${timezone}) = d.to
            then program.local_start(d.first - (d.after - d.first), ${timezone})
          else d.from - (d.to - d.from)
        end as before
      from days d`),
  );
  const current = { from: found.from, to: found.to };
  return { current, previous: compare === 'none' ? undefined : { from: found.before, to: found.from } };
}

async function inZone<T>(timezone: string, read: Promise<T>): Promise<T> {
  return read.catch((error: { code?: string }) => {
    if (error.code !== '22023') throw error;
    throw new Problem('invalid_parameter', `The database does not know the time zone '${timezone}'.`, {
      param: 'timezone',
    });
  });
}

/** The formats with which `to_char` names a day, an ISO week or a month. */
export const interval_formats: Record<Interval, string> = { day: 'YYYY-MM-DD', week: 'IYYY-"W"IW', month: 'YYYY-MM' };

/**
 * The days, ISO weeks or months of a window, in their order. Where clocks are put back across midnight, the local time of a bound may be of the
 * day before: that day is over, and the next one has begun.
 */
export const intervalsOf = (tx: Tx, { from, to }: Window, interval: Interval, zone: string): Promise<Interval_[]> =>
  tx.all(sql`
    select
      to_char(g.day, ${interval_formats[interval]}) as period,
      greatest(program.local_start(g.day::date, ${zone}), ${from}::timestamptz(3)) as from,
      least(program.local_start((g.day + ${step(interval)})::date, ${zone}), ${to}::timestamptz(3)) as to
    from generate_series(
      date_trunc(${interval}, ${from}::timestamptz at time zone ${zone}),
      (${to}::timestamptz at time zone ${zone}) + ${step(interval)}, ${step(interval)}
    ) as g (day)
    where program.local_start(g.day::date, ${zone}) < ${to}::timestamptz and ${from}::timestamptz < ${to}::timestamptz
      and program.local_start((g.day + ${step(interval)})::date, ${zone}) > ${from}::timestamptz(3)
    order by g.day`);

const step = (interval: Interval): Sql => sql`${`1 ${interval}`}::interval`;
