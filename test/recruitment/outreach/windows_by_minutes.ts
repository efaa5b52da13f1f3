/** The windows of outreach in one time zone, compared with what its clock shows minute by minute. */
import fc from 'fast-check';
import type { Schedule } from '../../../src/recruitment/campaigns/window.ts';
import { dayIn, isOpen, nextMidnight, nextOpening } from '../../../src/recruitment/campaigns/window.ts';
import { type Clock, changesOf, clockOf, day, hour, minute, type Reading, shows } from './clock.ts';

const from = Date.UTC(2026, 0, 1);
const to = Date.UTC(2028, 0, 1);
const around_change = 150;

export interface Amount {
  seed: number;
  /** Times anywhere in the two years, and windows in each night in which the clock is changed. */
  times: number;
  /** The distance at which changes of the clock are looked for. */
  step: number;
}

/** Returns the faults in the zone, as sentences. */
export function faultsIn(zone: string, { seed, times, step }: Amount): { faults: string[]; changes: number } {
  const clock = clockOf(zone);
  const changes = changesOf(clock, from, to, step);
  const faults = changes.flatMap((change, nth) => [
    ...(change - (changes[nth - 1] ?? 0) > 8 * day ? [] : ['changes its clock twice within 8 days']),
    ...faultsAround(change, zone, clock, fc.sample(windowNear(clock, change), { seed: seed + nth, numRuns: times })),
  ]);
  const samples = fc.sample(fc.tuple(anyWindow, fc.integer({ min: from, max: to })), { seed, numRuns: times });
  faults.push(...samples.flatMap(([window, at]) => faultsOfOpening(window, zone, clock, at)));
  return { faults: faults.map((fault) => `${zone}: ${fault}`), changes: changes.length };
}

type Window = Omit<Schedule, 'timezone'>;

const textOf = (minutes: number) =>
  [Math.floor(minutes / 60), minutes % 60].map((part) => `${part}`.padStart(2, '0')).join(':');
const minutesOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
const window = (days: number[], [one, other]: [number, number]): Window => ({
  days,
  from: textOf(Math.min(one, other, 1439)),
  to: textOf(Math.max(one, other, Math.min(one, other) + 1)),
});
const someDays = fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
const anyWindow = fc
  .tuple(someDays, fc.tuple(fc.nat(1440), fc.nat(1440)))
  .map(([days, [one, other]]) => window(days, [one, Math.max(other, 1)]));

/** A window at or about the hour that is skipped or shown twice: half of them have its very bounds. */
function windowNear(clock: Clock, change: number): fc.Arbitrary<Window> {
  const { time, weekday } = clock(change - minute);
  const bounds = [minutesOf(time) + 1, minutesOf(clock(change).time)] as [number, number];
  const near = fc.constantFrom(0, 0, 0, -61, -60, -30, -1, 1, 30, 59, 60, 61);
  const within = (minutes: number) => Math.min(Math.max(minutes, 0), 1440);
  return fc
    .tuple(near, near, someDays)
    .map(([one, other, days]) =>
      window(days.includes(weekday) ? days : [...days, weekday], [within(bounds[0] + one), within(bounds[1] + other)]),
    );
}

function faultsAround(change: number, zone: string, clock: Clock, windows: Window[]): string[] {
  const minutes = Array.from({ length: 2 * around_change }, (_, nth) => change + (nth - around_change) * minute);
  const readings = minutes.map(clock);
  return windows.flatMap((window, nth) => {
    const open = minutes.filter((_, at) => shows(window, readings[at] as Reading));
    const starts = [minutes[nth % 60], change - minute, change - 1, change, change + 61_007] as number[];
    return starts.flatMap((at) => [
      ...faultOfMidnight(zone, at, minutes, readings),
      ...faultOfNext(window, zone, at, open, minutes.at(-1) as number),
    ]);
  });
}

function faultOfNext(window: Window, zone: string, at: number, open: number[], end: number): string[] {
  const found = nextOpening(window, zone, new Date(at)).getTime();
  const first = open.find((start) => start + minute > at);
  const is_open = isOpen(window, zone, new Date(at));
  const told = `${JSON.stringify(window)} from ${new Date(at).toISOString()}`;
  if (is_open !== (first !== undefined && first <= at)) return [`${told} is open: ${is_open}`];
  if (first === undefined ? found > end : found === Math.max(first, at)) return [];
  return [`${told} opens at ${new Date(found).toISOString()}, not at ${first && new Date(first).toISOString()}`];
}

function faultOfMidnight(zone: string, at: number, minutes: number[], readings: Reading[]): string[] {
  const today = dayIn(zone, new Date(at));
  const midnight = nextMidnight(zone, new Date(at)).getTime();
  const nth = readings.findIndex(({ date }, nth) => (minutes[nth] as number) > at && date > today);
  const is_right = nth === -1 ? midnight > (minutes.at(-1) as number) : midnight === minutes[nth];
  return is_right ? [] : [`midnight after ${new Date(at).toISOString()} is at ${new Date(midnight).toISOString()}`];
}

/** The opening is in the window, and nothing between is: at hours, and at the minute before it. */
function faultsOfOpening(window: Window, zone: string, clock: Clock, at: number): string[] {
  const found = nextOpening(window, zone, new Date(at)).getTime();
  const between: number[] = found > at ? [at, found - 1] : [];
  const stride = Math.max(hour, Math.floor((found - at) / 20));
  for (let each = at; each < found; each += stride) between.push(each);
  const is_right = shows(window, clock(found)) && !between.some((each) => shows(window, clock(each)));
  const told = `${JSON.stringify(window)} from ${new Date(at).toISOString()}`;
  return is_right ? [] : [`${told} opens at ${new Date(found).toISOString()}`];
}
