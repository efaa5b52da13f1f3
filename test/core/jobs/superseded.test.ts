import t from 'tap';
import { eventually, sql, startRail } from '../../harness.ts';

const rail = await startRail();

t.test(
  'a job that another replaced is deleted once nobody runs it, and one that failed by itself is kept',
  async (t) => {
    const add = (key: string | null) => sql`
    select id from graphile_worker.add_job('test/unknown', '{}'::json, job_key => ${key}, max_attempts => 3, run_at => now() + interval '1 day')`;
    const [replaced] = await rail.query<{ id: string }>(add('fold'));
    const [failed] = await rail.query<{ id: string }>(add(null));
    await rail.query(sql`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'dead', attempts = 1 where id = ${replaced?.id}`);
    const [successor] = await rail.query<{ id: string }>(add('fold'));
    t.not(successor?.id, replaced?.id);
    await rail.query(sql`select core.forget_superseded_jobs()`);
    const left = async () =>
      (
        await rail.query<{ id: string }>(sql`
        select id from graphile_worker._private_jobs where id = any(${[replaced?.id, failed?.id, successor?.id]}::bigint[]) order by id`)
      ).map(({ id }) => id);
    t.same(await left(), [replaced?.id, failed?.id, successor?.id], 'while it runs it stays');
    await rail.query(sql`
    update graphile_worker._private_jobs
    set locked_at = null, locked_by = null, attempts = max_attempts, last_error = 'it failed'
    where id = any(${[replaced?.id, failed?.id]}::bigint[])`);
    await rail.query(sql`select core.forget_superseded_jobs()`);
    await eventually(async () => (await left()).length === 2, 'the one that was replaced to be deleted');
    t.same(await left(), [failed?.id, successor?.id]);
  },
);
