import t from 'tap';
import { bankDay } from '../../../../src/program/payouts/bank/bank_day.ts';

t.test('is the day itself, or the first after it on which banks pay', async (t) => {
  const days = [
    ['2026-11-27T23:59:59.999Z', '2026-11-27', 'a Friday'],
    ['2026-11-28T00:00:00.000Z', '2026-11-30', 'a Saturday'],
    ['2026-11-29', '2026-11-30', 'a Sunday'],
    ['2026-12-25', '2026-12-28', 'Christmas on a Friday'],
    ['2027-01-01', '2027-01-04', 'the New Year'],
    ['2026-05-01', '2026-05-04', 'the first of May'],
    ['2026-04-03', '2026-04-07', 'Good Friday to Easter Monday'],
    ['2027-03-26', '2027-03-30', 'Good Friday of the year after'],
    ['2038-04-23', '2038-04-27', 'the second latest Easter that there can be'],
    ['2028-02-29', '2028-02-29', 'a leap day'],
  ] as const;
  for (const [at, day, what] of days) t.equal(bankDay(at), day, what);
});
