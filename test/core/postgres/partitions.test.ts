import pg from 'pg';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { eventually, sql, startRail } from '../../harness.ts';

const rail = await startRail();

const partitionsOf = async (parent: string): Promise<string[]> =>
  (
    await rail.query<{ name: string }>(sql`
      select c.relname as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${parent}::regclass
      order by c.relname`)
  ).map(({ name }) => name);

const ensure = (parent: string, prefix: string, last: string) =>
  rail.query(
    sql`call core.ensure_weekly_partitions(${parent}, ${prefix}, '2031-01-06T00:00:00Z', ${last}::timestamptz)`,
  );

t.test("names a week's partition after its prefix, unless it is the table's first", async (t) => {
  await rail.query(sql`create table program.parted (id text collate "C" not null primary key) partition by range (id)`);
  await ensure('program.parted', 'one', '2031-01-06T00:00:00Z');
  await ensure('program.parted', 'two', '2031-01-13T00:00:00Z');
  await ensure('program.parted', 'one', '2031-01-13T00:00:00Z');
  await ensure('program.parted', 'two', '2031-01-13T00:00:00Z');
  t.same(await partitionsOf('program.parted'), [
    'parted_20310106',
    'parted_20310113',
    'parted_two_20310106',
    'parted_two_20310113',
  ]);
});

t.test('keeps the names of the partitions that are there', async (t) => {
  for (const [parent, prefix] of [
    ['webhooks.event', 'evt'],
    ['webhooks.delivery', 'whd'],
    ['program.click', 'clk'],
  ] as const) {
    const before = await partitionsOf(parent);
    await ensure(parent, prefix, '2031-01-06T00:00:00Z');
    const [, table] = parent.split('.');
    t.same(await partitionsOf(parent), [...before, `${table}_20310106`].toSorted(), parent);
  }
});

t.test('the audit notices when the weeks to come have no partitions', async (t) => {
  const late = sql`
    select c.oid::regclass::text as name
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'webhooks.attempt'::regclass and c.relname ~ '_fwd_' and to_date(right(c.relname, 8), 'YYYYMMDD') > now()`;
  t.same(await rail.audit(), []);
  for (const { name } of await rail.query<{ name: string }>(late)) await rail.query(sql`drop table ${raw(name)}`);
  t.match(await rail.audit(), [
    { invariant: 'the next two weeks have their partitions', subject_id: 'webhooks.attempt_fwd' },
  ]);
  await rail.query(
    sql`call core.ensure_weekly_partitions('webhooks.attempt', 'fwd', now(), now() + interval '5 weeks')`,
  );
  t.same(await rail.audit(), []);
});

t.test('makes nobody wait while a table is read for long, and is done afterwards', async (t) => {
  const reader = new pg.Client({ connectionString: rail.url });
  await reader.connect();
  t.teardown(() => reader.end());
  await reader.query('begin; select from program.click limit 1; select from webhooks.delivery limit 1');
  await t.rejects(ensure('program.click', 'clk', '2031-01-13T00:00:00Z'), { code: '55P03' });
  const tasks = ['program/keep_partitions', 'webhooks/keep_partitions'];
  for (const task of tasks) await rail.tick(task, '2032-01-05T00:00:00Z');
  await eventually(async () => {
    const failed = await rail.query(sql`
      select from graphile_worker.jobs
      where task_identifier = any (${tasks}) and last_error like '%lock timeout%'`);
    return failed.length === tasks.length;
  }, 'the failures of the jobs');
  await reader.query('rollback');
  await rail.query(sql`update graphile_worker._private_jobs set run_at = now()`);
  await eventually(
    async () =>
      (await partitionsOf('program.click')).includes('click_20320105') &&
      (await partitionsOf('webhooks.delivery')).includes('delivery_20320105'),
    'the partitions',
  );
});
