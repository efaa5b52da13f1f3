import pg from 'pg';
import { raw } from 'sql-template-tag';
import t from 'tap';
import { idTimePart, newId } from '../../../src/core/values/id.ts';
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

/** The last of the weeks to come, of each of these tables, which is not there any more. */
async function dropLast(...parents: string[]): Promise<string[]> {
  const last = await Promise.all(
    parents.map(async (parent) => (await partitionsOf(parent)).filter(isWeek).at(-1) as string),
  );
  for (const [nth, name] of last.entries())
    await rail.query(sql`drop table ${raw((parents[nth] as string).replace(/\..*/, ''))}.${raw(name)}`);
  return last;
}

const isWeek = (name: string): boolean => /^[a-z]+_20[12]\d{5}$/.test(name);

t.test('makes nobody wait while a table is read for long, and is done afterwards', async (t) => {
  const [clicks, deliveries] = (await dropLast('program.click', 'webhooks.delivery')) as [string, string];
  const reader = new pg.Client({ connectionString: rail.url });
  await reader.connect();
  t.teardown(() => reader.end());
  await reader.query('begin; select from program.click limit 1; select from webhooks.delivery limit 1');
  await t.rejects(ensure('program.click', 'clk', '2031-01-13T00:00:00Z'), { code: '55P03' });
  const tasks = ['program/keep_partitions', 'webhooks/keep_partitions'];
  for (const task of tasks) await rail.tick(task, new Date().toISOString());
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
      (await partitionsOf('program.click')).includes(clicks) &&
      (await partitionsOf('webhooks.delivery')).includes(deliveries),
    'the partitions',
  );
});

t.test(
  'drops a week 30 days after its end by the clock of Postgres, and none of which something waits to be delivered',
  async (t) => {
    const tables = ['event', 'delivery', 'attempt'];
    const weeks = ['2026-03-02', '2026-03-09', '2026-03-16'];
    for (const [table, prefix] of [
      ['event', 'evt'],
      ['delivery', 'whd'],
      ['attempt', 'whd'],
    ] as const)
      await rail.query(
        sql`call core.ensure_weekly_partitions(${`webhooks.${table}`}, ${prefix}, ${weeks[0]}::timestamptz, ${weeks[2]}::timestamptz)`,
      );
    const idOf = (prefix: string, week: number): string =>
      `${prefix}_${idTimePart(Date.parse(weeks[week] as string) + 86_400_000)}0000000000000000`;
    // In the first week a delivery waits for its retry, and in the second an event that is older than its delivery is in a queue.
    const { organization_id } = await rail.organization();
    const deliver = (id: string, event_id: string, next_attempt_at: string | null) => sql`
    insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, queue_position, next_attempt_at)
    values (${organization_id}, ${id}, 'prg_1', 'we_1', ${event_id}, 'sale.created', nextval('webhooks.queue_position'), ${next_attempt_at}::timestamptz)
    returning queue_position`;
    await rail.query(deliver(idOf('whd', 0), idOf('evt', 0), '2999-01-01T00:00:00Z'));
    const [queued] = await rail.query<{ queue_position: number }>(deliver(newId('whd'), idOf('evt', 1), null));
    await rail.query(sql`
    insert into webhooks.queued_delivery (endpoint_id, queue_position, organization_id, delivery_id, event_id, event_type)
    values ('we_1', ${queued?.queue_position}, ${organization_id}, ${newId('whd')}, ${idOf('evt', 1)}, 'sale.created')`);
    const old = async () =>
      (await Promise.all(tables.map((table) => partitionsOf(`webhooks.${table}`))))
        .flat()
        .filter((name) => /_202603\d\d$/.test(name));
    const recent = async () =>
      (await Promise.all(tables.map((table) => partitionsOf(`webhooks.${table}`))))
        .flat()
        .filter((name) => !/_202603\d\d$/.test(name));
    const before = await recent();
    t.equal((await old()).length, 9);
    await rail.query(sql`call webhooks.keep_partitions('2030-01-01T00:00:00Z', 'evt', 'whd')`);
    t.same(await old(), ['event_20260302', 'event_20260309', 'delivery_20260302', 'attempt_20260302']);
    t.same(await recent(), before, 'a time to come drops and makes nothing');

    await rail.query(sql`delete from webhooks.queued_delivery returning delivery_id`);
    await rail.query(sql`update webhooks.delivery set next_attempt_at = null, status = 'failed' returning id`);
    await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd')`);
    t.same(await old(), []);
    await rail.query(sql`delete from webhooks.delivery returning id`);
  },
);

t.test('goes on where a week got no partition in time, and keeps its rows as long as those of others', async (t) => {
  const parents = ['webhooks.event', 'webhooks.delivery', 'webhooks.attempt'];
  const { organization_id } = await rail.organization();
  const weeks = async (parent: string) => (await partitionsOf(parent)).filter(isWeek);
  const [this_week, next_week] = (await weeks('webhooks.event')).slice(-6);
  for (const parent of parents)
    for (const name of await weeks(parent)) await rail.query(sql`drop table webhooks.${raw(name)}`);
  const write = (days_ago: number, waits: boolean) => sql`
    with delivery as (
      insert into webhooks.delivery (organization_id, id, program_id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
      values (
        ${organization_id}, ${newId('whd')}, 'prg_1', 'we_1', ${newId('evt')}, 'sale.created',
        ${waits ? '2999-01-01T00:00:00Z' : null}::timestamptz, now() - make_interval(days => ${days_ago})
      )
      returning id, event_id, created_at
    ),
    event as (
      insert into webhooks.event (organization_id, id, position, program_id, type, body, created_at)
      select ${organization_id}, d.event_id, 0, 'prg_1', 'sale.created', '{}', d.created_at from delivery d
    )
    insert into webhooks.attempt (organization_id, delivery_id, attempt, at, duration_ms)
    select ${organization_id}, d.id, 1, d.created_at, 1 from delivery d
    returning delivery_id`;
  const written = [];
  for (const [days_ago, waits] of [
    [29, false],
    [31, true],
    [31, false],
  ] as const)
    written.push((await rail.query<{ delivery_id: string }>(write(days_ago, waits)))[0]?.delivery_id);

  await rail.query(sql`call webhooks.keep_partitions(now(), 'evt', 'whd')`);
  for (const parent of parents) {
    const [, table] = parent.split('.') as [string, string];
    const made = await weeks(parent);
    t.equal(made.length, 5, 'the weeks to come');
    t.notOk(made.includes(`${this_week}`.replace('event', table)));
    t.ok(made.includes(`${next_week}`.replace('event', table)));
  }
  const [left] = await rail.query(sql`
    select
      (select array_agg(d.id order by d.id) from webhooks.delivery d where d.organization_id = ${organization_id}) as deliveries,
      (select array_agg(a.delivery_id order by a.delivery_id) from webhooks.attempt a where a.organization_id = ${organization_id}) as attempts,
      (select count(*) from webhooks.event e where e.organization_id = ${organization_id}) as events`);
  const kept = written.slice(0, 2).toSorted();
  t.same(left, { deliveries: kept, attempts: kept, events: 2 });
  for (const parent of parents)
    await rail.query(sql`delete from ${raw(parent)} where organization_id = ${organization_id}`);
});
