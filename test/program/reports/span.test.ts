import fc from 'fast-check';
import t from 'tap';
import { coverByDays, minute_ms } from '../../../src/program/reports/span.ts';

const lengths: [number, number, number] = [15, 1440, 23040];
const first_minute = Date.UTC(2026, 2, 1) / minute_ms;
const most_days = 60;

/** Between which bounds a time is: 0 is before the first. */
const placeIn = (bounds: number[], time: number): number => bounds.filter((bound) => bound <= time).length;

t.test('days and what is moved count each quarter of an hour once, in its window', async () => {
  const quarter = fc.integer({ min: 0, max: most_days * 96 }).map((nth) => (first_minute + nth * 15) * minute_ms);
  const some = fc.array(quarter, { minLength: 2, maxLength: 12 }).map((bounds) => bounds.toSorted((a, b) => a - b));
  const local_days = fc
    .tuple(fc.integer({ min: -48, max: 56 }), fc.integer({ min: 1, max: most_days - 2 }))
    .map(([offset, days]) =>
      Array.from({ length: days + 1 }, (_, nth) => (first_minute + (nth + 1) * 1440 + offset * 15) * minute_ms),
    );
  fc.assert(
    fc.property(fc.oneof(some, local_days), (bounds) => {
      const covered = coverByDays(bounds, lengths);
      if (!covered) return bounds[0] === bounds.at(-1);
      const { days, ranges, moved } = covered;
      const windows = bounds.length - 1;
      for (let nth = 0; nth < most_days * 96; nth++) {
        const time = (first_minute + nth * 15) * minute_ms;
        const counts = Array.from({ length: windows + 2 }, () => 0);
        const count = (place: number, sign: number) => {
          counts[place] = (counts[place] as number) + sign;
        };
        for (const { from, to } of ranges) if (from <= time && time < to) count(placeIn(days, time), 1);
        for (const { from, to } of moved)
          if (from <= time && time < to) {
            count(placeIn(bounds, time), 1);
            count(placeIn(days, time), -1);
          }
        const place = placeIn(bounds, time);
        for (let window = 1; window <= windows; window++)
          if (counts[window] !== (window === place ? 1 : 0)) return false;
      }
      return true;
    }),
    { seed: 1, numRuns: 40 },
  );
});

t.test('days of whole hours from UTC are read by days, with as many quarters as the hours', async (t) => {
  const new_york = Array.from({ length: 401 }, (_, nth) => (first_minute + nth * 1440 + 300) * minute_ms);
  const covered = coverByDays(new_york, lengths);
  t.match(covered?.ranges, [{ minutes: 1440 }]);
  t.equal(covered?.moved.length, 401);
  t.ok(covered?.moved.every(({ from, to }) => to - from === 300 * minute_ms));
});
