import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import pg from 'pg';
import t from 'tap';
import { CallUnfinished, type Channel, type IntentRow, makeCall, type Outcome } from '../../../src/core/jobs/outbox.ts';
import { type Json, sql, startRail } from '../../harness.ts';
import {
  type Answer,
  bankChannel,
  type KillPoint,
  kill_points,
  startBank,
  type Transfer,
  transfer_table,
} from './bank.ts';

const rail = await startRail({ worker: false });
const bank = await startBank();
t.teardown(() => bank.close());
const client = new pg.Client(rail.url);
await client.connect();
await client.query(transfer_table);
await client.end();

const channel = bankChannel(bank.url);
const no_cut_off = new AbortController().signal;
let count = 0;

async function intend(): Promise<IntentRow> {
  const row = { organization_id: 'org_test', id: `transfer_${++count}` };
  await rail.query(
    sql`insert into bank.transfer (organization_id, id, request) values (${row.organization_id}, ${row.id}, '{"amount_minor": 100}') returning id`,
  );
  return row;
}

const rowOf = async ({ id }: IntentRow): Promise<Json> =>
  (await rail.query(sql`select attempts, in_doubt, status, error from bank.transfer where id = ${id}`))[0] as Json;

/** As the row's job does: again until it has ended. @returns the outcome, and how often it was tried */
async function callUntilDone(
  row: IntentRow,
  over: Channel<Transfer> = channel,
): Promise<{ outcome: Outcome | undefined; tries: number }> {
  for (let tries = 1; ; tries++) {
    try {
      return { outcome: await makeCall(over, row, { store: rail.store, cut_off: no_cut_off }), tries };
    } catch (error) {
      if (!(error instanceof CallUnfinished) || tries === 5) throw error;
    }
  }
}

const of = ({ id }: IntentRow, lines: Iterable<string>): string[] =>
  [...lines].filter((line) => line.split(' ').at(-1)?.startsWith(`${id}-`)).map((line) => line.replace(`${id}-`, ''));
const requestsOf = (row: IntentRow): string[] => of(row, bank.requests);
const effectsOf = (row: IntentRow): string[] => of(row, bank.effects);

t.test('what the bank says decides whether another attempt follows, and under which key', async (t) => {
  const cases: [answers: Answer[], requests: string[], effects: string[], row: Json][] = [
    [[], ['POST 1'], ['1'], { attempts: 1, status: 'succeeded' }],
    [['refuses'], ['POST 1'], [], { attempts: 1, status: 'refused', error: 'The bank refused.' }],
    [['is busy', 'is busy'], ['POST 1', 'POST 2', 'POST 3'], ['3'], { attempts: 3, status: 'succeeded' }],
    [['pays and hangs up'], ['POST 1', 'GET 1'], ['1'], { attempts: 1, status: 'succeeded' }],
    [['hangs up'], ['POST 1', 'GET 1', 'POST 1'], ['1'], { attempts: 1, status: 'succeeded' }],
    [
      ['hangs up', 'refuses'],
      ['POST 1', 'GET 1', 'POST 1'],
      [],
      { attempts: 1, status: 'refused', error: 'The bank refused.' },
    ],
    [
      ['hangs up', 'is busy', 'pays and hangs up'],
      ['POST 1', 'GET 1', 'POST 1', 'POST 2', 'GET 2'],
      ['2'],
      { attempts: 2, status: 'succeeded' },
    ],
  ];
  for (const [answers, requests, effects, expected] of cases) {
    await t.test(answers.join(', then ') || 'pays', async (t) => {
      bank.answers = [...answers];
      const row = await intend();
      const { outcome } = await callUntilDone(row);
      t.same(requestsOf(row), requests);
      t.same(effectsOf(row), effects);
      t.match(await rowOf(row), { in_doubt: false, error: null, ...expected });
      t.equal(outcome?.status, expected.status);
      t.equal((await callUntilDone(row)).outcome, undefined, 'and its job does nothing when it runs again');
      t.same(requestsOf(row), requests);
    });
  }
});

t.test('the reason is in the row, and not in what the job fails with', async (t) => {
  bank.answers = ['is busy'];
  const row = await intend();
  const made = makeCall(channel, row, { store: rail.store, cut_off: no_cut_off });
  await t.rejects(made, { name: 'CallUnfinished', message: /^(?!.*busy).*its row says why/ });
  t.match(await rowOf(row), { error: 'The bank is busy.', attempts: 1, in_doubt: false });
});

t.test('an attempt that was cut off is looked up', async (t) => {
  const row = await intend();
  const cut_off = AbortSignal.abort(new Error('the worker stops'));
  await t.rejects(makeCall(channel, row, { store: rail.store, cut_off }), { message: 'the worker stops' });
  t.match(await rowOf(row), { attempts: 1, in_doubt: true, status: 'waiting' });
  await callUntilDone(row);
  t.same(requestsOf(row), ['GET 1', 'POST 1']);
  t.same(effectsOf(row), ['1']);
});

/** Makes the row's call in a process that dies of kill -9 at a point. */
async function dieOver(row: IntentRow, point: KillPoint): Promise<void> {
  const script = join(import.meta.dirname, 'bank.ts');
  const child = spawn(process.execPath, [script, rail.url, bank.url, JSON.stringify(row), point], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 300_000,
    killSignal: 'SIGTERM',
  });
  const [, signal] = await once(child, 'exit');
  if (signal !== 'SIGKILL') throw new Error(`The process did not die where it was to, ${point}.`);
}

t.test('a process that is killed leaves one effect, wherever it was, and however often', async (t) => {
  const deaths: KillPoint[][] = [
    ...kill_points.map((point) => [point]),
    ['after the call', 'before the call'],
    ['before the call', 'after the call', 'before the outcome'],
  ];
  await Promise.all(
    deaths.map(async (points) => {
      const row = await intend();
      for (const point of points) await dieOver(row, point);
      const { tries } = await callUntilDone(row);
      const name = `killed ${points.join(', then ')}`;
      t.equal(tries, 1, name);
      t.same(effectsOf(row), ['1'], `${name}: one effect`);
      t.equal(requestsOf(row).filter((request) => request.startsWith('POST')).length, 1, `${name}: asked for once`);
      t.match(await rowOf(row), { attempts: 1, in_doubt: false, status: 'succeeded' }, name);
    }),
  );
});

t.test('without a look-up what was lost is sent again, as another attempt', async (t) => {
  const { lookUp: _, ...blind } = channel;
  const row = await intend();
  await dieOver(row, 'after the call');
  await callUntilDone(row, blind);
  t.same(requestsOf(row), ['POST 1', 'POST 2']);
  t.match(await rowOf(row), { attempts: 2, in_doubt: false, status: 'succeeded' });
});
