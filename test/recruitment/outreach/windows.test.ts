import t from 'tap';
import {
  dayIn,
  dueAfter,
  isOpen,
  nextMidnight,
  nextOpening,
  type Schedule,
  scheduleSchema,
  zoneOf,
} from '../../../src/recruitment/campaigns/window.ts';
import { dailyLimit, gapSeconds } from '../../../src/recruitment/inboxes/inbox.ts';
import { effort } from '../../runner/effort.ts';
import { day } from './clock.ts';
import { faultsIn } from './windows_by_minutes.ts';

const weekdays = [1, 2, 3, 4, 5];
const every_day = [1, 2, 3, 4, 5, 6, 7];
const window = (from: string, to: string, days = every_day) => ({ days, from, to });
const office: Schedule = { timezone: 'Europe/Berlin', ...window('09:00', '17:00', weekdays) };
const opens = (schedule: Omit<Schedule, 'timezone'>, zone: string, at: string) =>
  nextOpening(schedule, zone, new Date(at)).toISOString();

t.test('a schedule names the field that is wrong', (t) => {
  t.same(scheduleSchema.parse(office), office);
  t.equal(scheduleSchema.safeParse({ ...office, timezone: 'recipient', to: '24:00' }).success, true);
  for (const [changes, field] of [
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
    [{ timezone: '+02:00' }, 'timezone'],
    [{ days: [] }, 'days'],
    [{ days: [1, 1] }, 'days'],
    [{ days: [0] }, 'days.0'],
    [{ days: [8] }, 'days.0'],
    [{ from: '9:00' }, 'from'],
    [{ from: '24:00' }, 'from'],
    [{ to: '24:01' }, 'to'],
    [{ to: '09:00' }, 'to'],
    [{ from: '18:00' }, 'to'],
  ] as const) {
    const { error } = scheduleSchema.safeParse({ ...office, ...changes });
    t.equal(error?.issues[0]?.path.join('.'), field, JSON.stringify(changes));
  }
  t.end();
});

t.test('a window is open on its days from its start until before its end', (t) => {
  for (const [at, is_open] of [
    ['2026-03-06T07:59:59.999Z', false],
    ['2026-03-06T08:00:00.000Z', true],
    ['2026-03-06T15:59:59.999Z', true],
    ['2026-03-06T16:00:00.000Z', false],
    ['2026-03-07T10:00:00.000Z', false], // a Saturday
  ] as const) {
    t.equal(isOpen(office, 'Europe/Berlin', new Date(at)), is_open, at);
  }
  t.equal(opens(office, 'Europe/Berlin', '2026-03-06T10:11:12.013Z'), '2026-03-06T10:11:12.013Z');
  t.equal(opens(office, 'Europe/Berlin', '2026-03-06T16:00:00Z'), '2026-03-09T08:00:00.000Z');
  // The weekend in which summer time begins.
  t.equal(opens(office, 'Europe/Berlin', '2026-03-27T16:00:00Z'), '2026-03-30T07:00:00.000Z');
  t.equal(opens(window('22:00', '24:00'), 'Asia/Tokyo', '2026-03-06T14:59:59.999Z'), '2026-03-06T14:59:59.999Z');
  t.equal(opens(window('22:00', '24:00'), 'Asia/Tokyo', '2026-03-06T15:00:00Z'), '2026-03-07T13:00:00.000Z');
  t.throws(() => opens(office, 'Mars/Olympus', '2026-03-06T15:00:00Z'), RangeError);
  t.end();
});

t.test('a window goes by what the clock shows in a night in which it is changed', (t) => {
  const berlin = 'Europe/Berlin';
  // On 2026-03-29 the hour from 02:00 is skipped, on 2026-10-25 it is shown twice.
  t.equal(opens(window('02:00', '03:00'), berlin, '2026-03-29T00:00:00Z'), '2026-03-30T00:00:00.000Z');
  t.equal(opens(window('02:15', '02:45', [7]), berlin, '2026-03-29T00:00:00Z'), '2026-04-05T00:15:00.000Z');
  t.equal(opens(window('02:30', '04:00'), berlin, '2026-03-29T00:00:00Z'), '2026-03-29T01:00:00.000Z');
  t.equal(opens(window('02:00', '03:00'), berlin, '2026-10-25T00:59:59Z'), '2026-10-25T00:59:59.000Z');
  t.equal(opens(window('02:00', '03:00'), berlin, '2026-10-25T01:59:59Z'), '2026-10-25T01:59:59.000Z');
  t.equal(opens(window('02:00', '03:00'), berlin, '2026-10-25T02:00:00Z'), '2026-10-26T01:00:00.000Z');
  t.equal(opens(window('02:30', '04:00'), berlin, '2026-10-25T01:00:00Z'), '2026-10-25T01:30:00.000Z');
  // Samoa crossed the date line: it had no 2011-12-30, a Friday.
  t.equal(opens(window('09:00', '17:00', [5]), 'Pacific/Apia', '2011-12-30T04:00:00Z'), '2012-01-05T19:00:00.000Z');
  // Lord Howe Island skips half an hour.
  t.equal(opens(window('02:00', '02:31'), 'Australia/Lord_Howe', '2026-10-03T15:29:00Z'), '2026-10-03T15:30:00.000Z');
  t.end();
});

t.test('a day begins at midnight, or at the first time that the clock shows', (t) => {
  const midnight = (zone: string, at: string) => nextMidnight(zone, new Date(at)).toISOString();
  t.equal(dayIn('America/Los_Angeles', new Date('2026-03-06T07:59:59Z')), '2026-03-05');
  t.equal(dayIn('Pacific/Kiritimati', new Date('2026-03-06T10:00:00Z')), '2026-03-07');
  t.equal(midnight('UTC', '2026-03-06T00:00:00Z'), '2026-03-07T00:00:00.000Z');
  t.equal(midnight('Europe/Berlin', '2026-03-28T23:00:00Z'), '2026-03-29T22:00:00.000Z');
  // Beirut skips midnight in spring, and shows the last hour of a day twice in autumn.
  t.equal(midnight('Asia/Beirut', '2026-03-28T20:00:00Z'), '2026-03-28T22:00:00.000Z');
  t.equal(dayIn('Asia/Beirut', new Date('2026-03-28T22:00:00Z')), '2026-03-29');
  t.equal(midnight('Asia/Beirut', '2026-10-24T20:30:00Z'), '2026-10-24T22:00:00.000Z');
  t.end();
});

t.test('a follow-up is due calendar days after the last email, in the window', (t) => {
  const due = (schedule: Omit<Schedule, 'timezone'>, zone: string, sent: string, delay_days: number) =>
    dueAfter(schedule, zone, new Date(sent), delay_days).toISOString();
  const berlin = 'Europe/Berlin';
  t.equal(due(office, berlin, '2026-03-02T15:59:00Z', 3), '2026-03-05T08:00:00.000Z');
  t.equal(due(office, berlin, '2026-03-02T15:59:00Z', 5), '2026-03-09T08:00:00.000Z', 'a Saturday is Monday');
  t.equal(due(office, berlin, '2026-03-02T15:59:00Z', 0), '2026-03-02T15:59:00.000Z');
  t.equal(due(office, berlin, '2026-03-02T16:00:00Z', 0), '2026-03-03T08:00:00.000Z');
  t.equal(due(office, berlin, '2026-03-27T08:00:00Z', 3), '2026-03-30T07:00:00.000Z', 'over a change of the clock');
  t.equal(due(office, berlin, '2026-01-05T08:00:00Z', 365), '2027-01-05T08:00:00.000Z');
  // It is Tuesday in Auckland when it is Monday in Berlin.
  t.equal(due(window('09:00', '17:00'), 'Pacific/Auckland', '2026-03-02T15:00:00Z', 1), '2026-03-03T20:00:00.000Z');
  t.end();
});

t.test('the zone of a recipient is its own, that of its country, or that of the brand', (t) => {
  const zone = (timezone: string | null, country_code: string | null, schedule = 'recipient') =>
    zoneOf({ timezone: schedule }, { timezone, country_code }, 'Europe/London');
  t.equal(zone('Asia/Tokyo', 'DE', 'Europe/Paris'), 'Europe/Paris');
  t.equal(zone('Asia/Tokyo', 'DE'), 'Asia/Tokyo');
  t.equal(zone(null, 'DE'), 'Europe/Berlin');
  t.equal(zone(null, 'JP'), 'Asia/Tokyo');
  t.equal(zone(null, 'IN'), 'Asia/Calcutta');
  for (const country_code of ['US', 'ES', 'PT', 'AU', 'BR', 'CN', 'XX', 'ZZ', 'd1', null]) {
    t.equal(zone(null, country_code), 'Europe/London', `${country_code}`);
  }
  t.end();
});

t.test('a ramp grows with each day that sent, up to the limit', (t) => {
  const ramp = { start: 10, step: 2 };
  t.same(
    [0, 1, 14, 15, 16, 1_000].map((days) => dailyLimit({ daily_limit: 40, ramp }, days)),
    [10, 12, 38, 40, 40, 40],
  );
  t.equal(dailyLimit({ daily_limit: 40, ramp: null }, 0), 40);
  t.equal(dailyLimit({ daily_limit: 5, ramp }, 0), 5);
  const gap = { min_gap_s: 90, max_gap_s: 300 };
  t.same(
    [0, 0.5, 1 - Number.EPSILON].map((random) => gapSeconds(gap, random)),
    [90, 195, 300],
  );
  t.equal(gapSeconds({ min_gap_s: 0, max_gap_s: 0 }, 0.99), 0);
  t.end();
});

t.test('no opening is outside its window and none is skipped, in any zone and any night of two years', (t) => {
  const zones = Intl.supportedValuesOf('timeZone');
  const found = zones.map((zone, seed) => faultsIn(zone, { seed, times: effort.times_per_zone, step: 7 * day }));
  t.same(found.flatMap(({ faults }) => faults).slice(0, 10), []);
  t.ok(zones.length > 400 && found.filter(({ changes }) => changes >= 4).length > 100);
  t.end();
});
