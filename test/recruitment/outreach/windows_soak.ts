/** `npm run soak -- windows`: every time zone again and again, from another seed each time. */
import t from 'tap';
import { day, hour } from './clock.ts';
import { faultsIn } from './windows_by_minutes.ts';

const times = 40;
/** In the first round, changes of the clock that are taken back within days are looked for. */
const first_step = 3 * hour;

/** @param seed of the first zone in the first round: the same one makes the same windows and times */
export function soakWindows({ seconds, seed }: { seconds: number; seed: number }): void {
  t.setTimeout((seconds + 180) * 1_000);
  t.test(`no opening is outside its window, and none is skipped (--seed ${seed}, ${seconds} s)`, (t) => {
    const end = Date.now() + seconds * 1_000;
    let [checked, changes] = [0, 0];
    for (let round = 0; Date.now() < end; round++) {
      for (const [nth, zone] of Intl.supportedValuesOf('timeZone').entries()) {
        if (Date.now() >= end) break;
        const step = round === 0 ? first_step : 7 * day;
        const found = faultsIn(zone, { seed: seed + round * 1_000 + nth, times, step });
        t.same(found.faults.slice(0, 10), [], zone);
        checked++;
        changes += found.changes;
      }
    }
    t.comment(`${checked} zones and ${changes} changes of a clock, ${times} windows each`);
    t.end();
  });
}
