import { once } from 'node:events';
import t from 'tap';
import { openJobConnections } from '../../../src/core/jobs/job_pool.ts';
import { log, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const pool = openJobConnections(rail.url, 2, log, { isOver: () => false, onLost: () => {} });
t.teardown(() => pool.end());

t.test('a worker believes that its queue was migrated only where it was', async (t) => {
  const client = await pool.connect();
  const heard: string[] = [];
  client.on('notification', ({ channel }) => heard.push(channel));
  await client.query('listen "jobs:insert"; listen "worker:migrate"');
  const forge = () => rail.query(sql`select pg_notify('worker:migrate', '{"migrationNumber": 99, "breaking": true}')`);
  const nextJob = async () => {
    const next = once(client, 'notification', { signal: AbortSignal.timeout(10_000) });
    await rail.query(sql`select pg_notify('jobs:insert', '{}')`);
    await next;
    await client.query('select 1');
  };
  await forge();
  await nextJob();
  t.same(heard, ['jobs:insert']);

  const migration = sql`insert into graphile_worker.migrations (id, breaking) values (99, true)`;
  await rail.query(migration);
  const told = once(client, 'notification', { signal: AbortSignal.timeout(10_000) });
  await forge();
  await told;
  t.same(heard, ['jobs:insert', 'worker:migrate']);
  await rail.query(sql`delete from graphile_worker.migrations where id = 99`);
  client.release();
});
