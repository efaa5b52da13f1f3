import { once } from 'node:events';
import t from 'tap';
import { openJobConnections } from '../../../src/core/jobs/job_pool.ts';
import { eventually, log, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const open = () => openJobConnections(rail.url, () => 2, log, { isOver: () => false, onLost: () => {} });
const { pool, close } = open();
t.teardown(() => close(60_000));

t.test('a worker believes that its queue was migrated only where it was', async (t) => {
  const client = await pool.connect();
  const heard: string[] = [];
  client.on('notification', ({ channel }) => heard.push(channel));
  await client.query('listen "jobs:insert"; listen "worker:migrate"');
  const forge = () => rail.query(sql`select pg_notify('worker:migrate', '{"migrationNumber": 99, "breaking": true}')`);
  const nextJob = async () => {
    const next = once(client, 'notification', { signal: AbortSignal.timeout(120_000) });
    await rail.query(sql`select pg_notify('jobs:insert', '{}')`);
    await next;
    await client.query('select 1');
  };
  await forge();
  await nextJob();
  t.same(heard, ['jobs:insert']);

  const migration = sql`insert into graphile_worker.migrations (id, breaking) values (99, true)`;
  await rail.query(migration);
  const told = once(client, 'notification', { signal: AbortSignal.timeout(120_000) });
  await forge();
  await told;
  t.same(heard, ['jobs:insert', 'worker:migrate']);
  await rail.query(sql`delete from graphile_worker.migrations where id = 99`);
  client.release();
});

t.test('a worker that stops cuts off the connections that its queue does not return', async (t) => {
  const { pool: held, close: closeHeld } = open();
  const clients = [await held.connect(), await held.connect()];
  const pids = clients.map((client) => (client as unknown as { processID: number }).processID);
  const left = () => rail.query(sql`select from pg_stat_activity where pid = any (${pids})`);
  t.equal((await left()).length, 2);
  await closeHeld(1);
  await eventually(async () => (await left()).length === 0, 'the connections to be gone');
});
