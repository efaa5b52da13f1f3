/** Clocks by Intl alone, which the windows of outreach are compared with. */
import type { Schedule } from '../../../src/recruitment/campaigns/window.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

export interface Reading {
  /** `YYYY-MM-DD` */
  date: string;
  /** `HH:MM` */
  time: string;
  /** 1 is Monday. */
  weekday: number;
}

export type Clock = (at: number) => Reading;

export function clockOf(timeZone: string): Clock {
  const digits = '2-digit';
  const format = new Intl.DateTimeFormat('en-CA', {
    ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: digits, day: digits, hour: digits, minute: digits },
  });
  return (at) => {
    const [date, time] = format.format(at).split(', ') as [string, string];
    return { date, time, weekday: new Date(date).getUTCDay() || 7 };
  };
}

export const shows = ({ days, from, to }: Pick<Schedule, 'days' | 'from' | 'to'>, { weekday, time }: Reading) =>
  days.includes(weekday) && from <= time && time < to;

/** The instants at which a clock is changed. */
export function changesOf(clock: Clock, from: number, to: number, step: number): number[] {
  const changes: number[] = [];
  for (let at = from; at < to; at += step) {
    if (offsetAt(clock, at) !== offsetAt(clock, at + step)) changes.push(changeBetween(clock, at, at + step));
  }
  return changes;
}

function changeBetween(clock: Clock, start: number, end: number): number {
  const offset = offsetAt(clock, start);
  let [before, after] = [start, end];
  while (after - before > minute) {
    const middle = before + Math.floor((after - before) / 2 / minute) * minute;
    if (offsetAt(clock, middle) === offset) before = middle;
    else after = middle;
  }
  return after;
}

function offsetAt(clock: Clock, at: number): number {
  const { date, time } = clock(at);
  return Date.parse(`${date}T${time}Z`) - at;
}
