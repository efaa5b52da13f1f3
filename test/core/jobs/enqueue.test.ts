import pg from 'pg';
import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const client = new pg.Client(rail.url);
await client.connect();
t.teardown(() => client.end());

let count = 0;
const enqueue = (jobs: number): Promise<unknown> =>
  client.query('select core.enqueue($1)', [
    JSON.stringify(Array.from({ length: jobs }, () => ({ identifier: 'core/none', job_key: `none ${++count}` }))),
  ]);

t.test('reads no waiting job to enqueue another one, whatever there was when the session began', async (t) => {
  await enqueue(20);
  await client.query('analyze');
  for (let nth = 0; nth < 8; nth++) await enqueue(1);
  await enqueue(3_000);
  const read = async (): Promise<number> => {
    await client.query('select pg_stat_force_next_flush()');
    const { rows } = await client.query<{ read: number }>(
      `select seq_tup_read::integer as read from pg_stat_all_tables where relid = 'graphile_worker._private_jobs'::regclass`,
    );
    return rows[0]?.read as number;
  };
  const before = await read();
  await enqueue(1);
  t.equal((await read()) - before, 0);
  const { rows } = await client.query('select count(*)::integer as jobs from graphile_worker._private_jobs');
  t.equal(rows[0].jobs, 3_029);
});

const task = 'core/purge_expired';
const waiting = () =>
  rail.query(sql`
    select j.key, j.payload, j.run_at, j.attempts, j.max_attempts, j.revision, j.locked_by, j.flags, q.queue_name
    from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
    left join graphile_worker._private_job_queues q on q.id = j.job_queue_id
    where t.identifier in (${task}, 'core/unheard_of') order by t.identifier, j.key, j.payload::text`);

t.test('enqueues jobs as add_jobs does', async (t) => {
  const jobs = [
    { identifier: 'core/unheard_of', payload: { nth: 1 } },
    { identifier: task, payload: { nth: 2 }, job_key: 'one' },
    { identifier: task, payload: { nth: 3 }, run_at: '2099-01-01T00:00:00.000Z', max_attempts: 3 },
    { identifier: task, job_key: 'two' },
    { identifier: task, payload: { nth: 4 }, queue_name: 'one at a time' },
  ];
  const add = (door: string) => client.query(`select ${door}`, [JSON.stringify(jobs)]);
  const all = `graphile_worker.add_jobs(array(select json_populate_record(null::graphile_worker.job_spec, j) from json_array_elements($1) as j))`;
  const emptied = async (): Promise<Json[]> => {
    const found = await waiting();
    await client.query('truncate graphile_worker._private_jobs');
    return found.map((job) => ({ ...job, run_at: job.run_at > '2090' ? job.run_at : 'now' }));
  };
  await client.query('truncate graphile_worker._private_jobs');
  await client.query(`delete from graphile_worker._private_tasks where identifier = 'core/unheard_of'`);
  await add('core.enqueue($1)');
  const first = await emptied();
  t.equal(first.length, 5);
  t.equal(first.filter(({ queue_name }) => queue_name === 'one at a time').length, 1);
  await add(all);
  t.same(first, await emptied());

  for (const door of ['core.enqueue($1)', all]) {
    await add(door);
    // One of the two keys is held by a job that runs, the other one by a job that waits.
    await client.query(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'a pool', attempts = 1 where key = 'one'`,
    );
    await add(door);
    const found = await emptied();
    t.equal(found.length, 9, door);
    t.same(
      found.map(({ key, revision, locked_by, attempts }) => [key, revision, locked_by, attempts]).toSorted(),
      [
        ...Array.from({ length: 6 }, () => [null, 0, null, 0]),
        [null, 0, 'a pool', 25],
        ['one', 0, null, 0],
        ['two', 1, null, 0],
      ].toSorted(),
      door,
    );
  }

  for (const door of ['core.enqueue($1)', all]) {
    await add(door);
    await client.query(
      `update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'it failed' where key = 'two'`,
    );
    await add(door);
    const failed = (await emptied()).filter(({ attempts }) => attempts === 25);
    t.match(
      failed,
      [{ key: null, flags: { superseded: true } }],
      'a job that failed for good stays, and another takes its key',
    );
  }
});

t.test('a job that a worker takes meanwhile is followed by another one of its key', async (t) => {
  const job = JSON.stringify([{ identifier: 'core/none', job_key: 'taken' }, { identifier: 'core/none' }]);
  await client.query('select core.enqueue($1)', [job]);
  const worker = new pg.Client(rail.url);
  await worker.connect();
  await worker.query('begin');
  await worker.query(
    `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'test' where key = 'taken'`,
  );
  const enqueued = client.query('select core.enqueue($1)', [job]);
  const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'`;
  await eventually(async () => (await rail.query(waiting)).length > 0, 'the second look at the job');
  await worker.query('commit');
  await enqueued;
  const { rows } = await worker.query(
    `select count(*)::integer as jobs from graphile_worker._private_jobs where key = 'taken' and locked_at is null`,
  );
  t.equal(rows[0].jobs, 1);
  await worker.end();
});

t.test('leaves a job of its key that waits to be due when it was, no longer than it says', async (t) => {
  const at = async (fields: object): Promise<number> => {
    const job = { identifier: 'core/purge_expired', job_key: 'patient', ...fields };
    await client.query('select core.enqueue($1)', [JSON.stringify([job])]);
    const { rows } = await client.query(`select run_at from graphile_worker._private_jobs where key = 'patient'`);
    return rows[0].run_at.getTime();
  };
  const soon = Date.now() + 30_000;
  t.equal(await at({ run_at: new Date(soon) }), soon);
  t.equal(await at({ patience_ms: 60_000 }), soon, 'it may wait for longer');
  t.ok((await at({ patience_ms: 1_000 })) < soon, 'it may not');
  const first = await at({ run_at: new Date(soon), patience_ms: 1_000 });
  t.ok(first < soon, 'it is not put off');
  t.equal(await at({ run_at: new Date(soon) }), soon, 'without patience it is due when this one is');
});
