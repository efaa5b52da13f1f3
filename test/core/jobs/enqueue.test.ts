import pg from 'pg';
import t from 'tap';
import { sql, startRail } from '../../harness.ts';

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

t.test('one worker watches at a time, and a refused one shortens no watch', async (t) => {
  const keep = (worker: string) =>
    rail.query<{ kept: boolean }>(sql`select core.keep_watch('watch_test', ${worker}, interval '1 minute') as kept`);
  const rounds = 20;
  const asked = await Promise.all(Array.from({ length: rounds }, (_, nth) => keep(`worker_${nth % 4}`)));
  const winners = new Set(asked.flatMap(([row], nth) => (row?.kept ? [`worker_${nth % 4}`] : [])));
  t.equal(winners.size, 1);
  t.same(await rail.query(sql`select distinct watched_by from core.watch where name = 'watch_test'`), [
    { watched_by: [...winners][0] },
  ]);
  t.match(await keep([...winners][0] as string), [{ kept: true }], 'and goes on');
});
