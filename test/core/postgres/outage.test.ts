import t from 'tap';
import { logFailure, logOutage } from '../../../src/core/postgres/outage.ts';

const away = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });

function listener() {
  const lines: [object, string][] = [];
  return { lines, warn: (details: object, message: string) => void lines.push([details, message]) };
}

t.test('that Postgres is away is one line without a stack for all that fails by it', async (t) => {
  const log = listener();
  for (const what of ['the worker failed', 'housekeeping failed', 'a tick failed']) logFailure(log, away, what);
  t.strictSame(log.lines, [[{ reason: away.message }, 'Postgres cannot be reached; trying again']]);
  const other = listener();
  logFailure(other, away, 'a tick failed');
  t.equal(other.lines.length, 1, 'each process says it');
});

t.test('it is said again after a pause that grows', async (t) => {
  const log = listener();
  const count = (seconds: number): number => {
    logOutage(log, away, seconds * 1_000);
    return log.lines.length;
  };
  t.strictSame([0, 1, 2.5, 5, 7, 14, 15, 30, 31].map(count), [1, 1, 2, 2, 3, 3, 4, 4, 5]);
  for (let second = 31; second < 900; second++) count(second);
  t.ok(log.lines.length < 25, 'at most once a minute in the end');
});

t.test('it is said what is the matter, each by itself', async (t) => {
  const log = listener();
  const failures = {
    '53100': 'could not extend file',
    '53300': 'too many clients',
    '55P03': 'lock timeout',
    '25006': 'read-only',
  };
  for (const [code, message] of Object.entries(failures)) {
    for (let nth = 0; nth < 3; nth++) logOutage(log, Object.assign(new Error(message), { code }), nth);
  }
  t.match(log.lines, [
    [{ reason: 'read-only' }, /takes no writes/],
    [{ reason: 'could not extend file' }, /no space left on its disk/],
    [{ reason: 'too many clients' }, /no connections left/],
    [{ reason: 'lock timeout' }, /wait too long for locks/],
  ]);
  t.equal(log.lines.length, 4);
});

t.test('any other failure is logged as it is', async (t) => {
  const log = listener();
  const fault = new Error('a fault of the code');
  logFailure(log, fault, 'a tick failed', { schedule: 'sweep' });
  t.strictSame(log.lines, [[{ err: fault, schedule: 'sweep' }, 'a tick failed']]);
});
