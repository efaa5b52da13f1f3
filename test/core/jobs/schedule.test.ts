import t from 'tap';
import { minuteOf, register, runDue, type Schedule, ticksBetween } from '../../../src/core/jobs/schedule.ts';
import { schedules } from '../../../src/products.ts';
import { startWorker } from '../../../src/worker.ts';
import { eventually, log, type Rail, services, sql, startRail } from '../../harness.ts';

const ticks = (cron: string, missed: Schedule['missed'], after: string, until: string): string[] =>
  ticksBetween({ name: 'test', cron, missed }, Date.parse(after), Date.parse(until));

t.test('the ticks of an interval are those after its beginning and up to its end, oldest first', (t) => {
  const cases: [cron: string, after: string, until: string, expected: string[]][] = [
    ['* * * * *', '2026-03-01T12:00:00Z', '2026-03-01T12:02:59Z', ['2026-03-01T12:01', '2026-03-01T12:02']],
    ['* * * * *', '2026-03-01T12:00:00Z', '2026-03-01T12:00:59Z', []],
    ['* * * * *', '2026-03-01T11:59:59Z', '2026-03-01T12:00:00Z', ['2026-03-01T12:00']],
    ['1,31 * * * *', '2026-03-01T12:01:00Z', '2026-03-01T13:01:00Z', ['2026-03-01T12:31', '2026-03-01T13:01']],
    ['1,31 * * * *', '2026-03-01T12:00:00Z', '2026-03-01T12:00:59Z', []],
    ['17 * * * *', '2026-12-31T22:17:00Z', '2027-01-01T00:30:00Z', ['2026-12-31T23:17', '2027-01-01T00:17']],
    ['7 3 * * *', '2026-02-27T03:07:00Z', '2026-03-01T03:07:00Z', ['2026-02-28T03:07', '2026-03-01T03:07']],
    ['7 3 * * *', '2028-02-28T03:07:00Z', '2028-03-01T03:06:00Z', ['2028-02-29T03:07']],
    ['5 0 1 * *', '2026-01-31T23:59:00Z', '2026-02-01T00:04:59Z', []],
    ['5 0 1 * *', '2026-01-31T23:59:00Z', '2026-02-01T00:05:00Z', ['2026-02-01T00:05']],
    ['5 0 1 * *', '2026-01-01T00:05:00Z', '2026-03-31T00:00:00Z', ['2026-02-01T00:05', '2026-03-01T00:05']],
    ['0 0 1 1 *', '2025-12-31T23:58:00Z', '2026-01-01T00:00:00Z', ['2026-01-01T00:00']],
    ['30 2 * * *', '2026-03-28T03:00:00Z', '2026-03-29T03:00:00Z', ['2026-03-29T02:30']],
    ['30 2 * * *', '2026-10-24T03:00:00Z', '2026-10-25T03:00:00Z', ['2026-10-25T02:30']],
    ['* * * * *', '2026-03-01T12:05:00Z', '2026-03-01T12:00:00Z', []],
  ];
  for (const [cron, after, until, expected] of cases) {
    const exact = expected.map((minute) => `${minute}:00.000Z`);
    t.strictSame(ticks(cron, 'each', after, until), exact, `each of '${cron}' after ${after} until ${until}`);
    t.strictSame(ticks(cron, 'latest', after, until), exact.slice(-1), `the latest of '${cron}' until ${until}`);
  }
  t.end();
});

t.test('every schedule is known to node-cron and ticks within a month', (t) => {
  for (const schedule of schedules) {
    t.not(ticksBetween(schedule, Date.parse('2026-01-31T00:00:00Z'), Date.parse('2026-03-01T00:00:00Z')).length, 0);
  }
  t.end();
});

t.test('on a database', async (t) => {
  const rail = await startRail({ worker: false });
  const named = (name: string, missed: Schedule['missed'], cron = '* * * * *'): Schedule => ({ name, cron, missed });
  const runs = (name: string) =>
    rail.query<{ id: string; tick: string }>(
      sql`select id, tick from core.scheduled_run where name = ${name} order by tick`,
    );
  const jobs = (name: string) =>
    rail.query<{ payload: { run_id: string; tick: string } }>(sql`
      select j.payload from graphile_worker._private_jobs j
      join graphile_worker._private_tasks k on k.id = j.task_id
      where k.identifier = ${name} order by j.id`);
  const knownSince = (name: string, since: string) =>
    rail.query(sql`update core.schedule set since = ${since}::timestamptz where name = ${name} returning name`);

  await t.test('three schedulers that race on one tick make one run and one job', async (t) => {
    const schedule = named('test/raced', 'latest');
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-03-01T11:59:30Z');
    for (let minute = 0; minute < 10; minute++) {
      const at = new Date(Date.parse('2026-03-01T12:00:00.250Z') + minute * 60_000);
      await Promise.all([1, 2, 3].map(() => runDue(rail.store, [schedule], at)));
    }
    const made = await runs(schedule.name);
    t.equal(made.length, 10);
    t.equal(made[0]?.tick, '2026-03-01T12:00:00.000Z');
    t.ok(made.every(({ id }) => id.startsWith('run_')));
    t.same(
      (await jobs(schedule.name)).map(({ payload }) => payload),
      made.map(({ id, tick }) => ({ run_id: id, tick })),
    );
  });

  await t.test('missed ticks are caught up one by one where each counts', async (t) => {
    const schedule = named('test/each', 'each');
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-01-31T23:57:10Z');
    await runDue(rail.store, [schedule], new Date('2026-02-01T00:01:05Z'));
    t.same(
      (await jobs(schedule.name)).map(({ payload }) => payload.tick),
      ['23:58', '23:59']
        .map((at) => `2026-01-31T${at}:00.000Z`)
        .concat(['00:00', '00:01'].map((at) => `2026-02-01T${at}:00.000Z`)),
    );
    await runDue(rail.store, [schedule], new Date('2026-02-01T00:01:59Z'));
    t.equal((await runs(schedule.name)).length, 4, 'and not again');
  });

  await t.test('and by their latest where that makes up for those before', async (t) => {
    const schedule = named('test/latest', 'latest', '0 * * * *');
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-01-31T20:30:00Z');
    await runDue(rail.store, [schedule], new Date('2026-02-01T00:59:00Z'));
    t.same(
      (await runs(schedule.name)).map(({ tick }) => tick),
      ['2026-02-01T00:00:00.000Z'],
    );
  });

  await t.test('a tick whose minute passed by is run at the next minute', async (t) => {
    const schedule = named('test/late', 'each', '0 0 1 * *');
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-01-31T23:50:00Z');
    const runMinute = minuteOf(rail.store, [schedule], log);
    await runMinute(new Date('2026-01-31T23:59:00Z'));
    await runMinute(new Date('2026-02-01T00:01:00Z'));
    await runMinute(new Date('2026-02-01T00:02:00Z'));
    t.same(
      (await runs(schedule.name)).map(({ tick }) => tick),
      ['2026-02-01T00:00:00.000Z'],
    );
  });

  await t.test('a tick that failed is run at the next minute', async (t) => {
    const schedule = named('test/failed', 'each', '0 0 1 * *');
    const runMinute = minuteOf(rail.store, [schedule], log);
    await runMinute(new Date('2026-02-01T00:00:00Z'));
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-01-31T23:50:00Z');
    await runMinute(new Date('2026-02-01T00:01:00Z'));
    t.same(
      (await runs(schedule.name)).map(({ tick }) => tick),
      ['2026-02-01T00:00:00.000Z'],
    );
  });

  await t.test('a schedule that becomes known runs nothing from before', async (t) => {
    const schedule = named('test/new', 'each', '0 0 * * *');
    await register(rail.store, [schedule]);
    await runDue(rail.store, [schedule], new Date());
    t.same(await runs(schedule.name), []);
  });

  await t.test('registering again does not forget since when a schedule is known', async (t) => {
    const schedule = named('test/again', 'each');
    await register(rail.store, [schedule]);
    await knownSince(schedule.name, '2026-03-01T12:00:00Z');
    await register(rail.store, [schedule]);
    await runDue(rail.store, [schedule], new Date('2026-03-01T12:01:00Z'));
    t.equal((await runs(schedule.name)).length, 1);
  });
});

t.test('a worker that starts catches up what was missed while none ran', async (t) => {
  const rail = await startRail({ worker: false });
  const name = 'program/mature_commissions';
  await register(rail.store, schedules);
  await rail.query(sql`update core.schedule set since = now() - interval '3 hours' returning name`);
  await startRailWorker(rail);
  await eventually(async () => {
    const [row] = await rail.query(sql`select from core.scheduled_run where name = ${name}`);
    return row !== undefined;
  }, 'the missed tick to be run');
  const run = await rail.query<{ age_s: number }>(
    sql`select extract(epoch from now() - tick)::integer as age_s from core.scheduled_run where name = ${name} order by tick limit 1`,
  );
  t.ok((run[0]?.age_s as number) < 300, 'only the latest of them');
});

async function startRailWorker(rail: Rail): Promise<void> {
  const worker = startWorker({ url: rail.url, store: rail.store, services, concurrency: 2, log });
  t.teardown(() => worker.stop());
  await worker.ready;
}
