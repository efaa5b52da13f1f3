import t from 'tap';
import { concerns, wasMigrated } from '../../../src/core/jobs/graphile_worker_0_18.ts';
import { openJobConnections } from '../../../src/core/jobs/job_pool.ts';
import { proveLife } from '../../../src/core/jobs/liveness.ts';
import { eventually, log, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });
const open = () => openJobConnections(rail.url, () => 2, log, { isOver: () => false, onLost: () => {} });

t.test('a worker believes that its queue was migrated only where it was', async (t) => {
  const { worker_id, end } = await proveLife(rail.url);
  t.teardown(end);
  const isBelieved = () => wasMigrated(rail.store.database, worker_id);
  t.notOk(await isBelieved());
  await rail.query(sql`insert into graphile_worker.migrations (id, breaking) values (99, true)`);
  t.ok(await isBelieved());
  await rail.query(sql`delete from graphile_worker.migrations where id = 99`);
});

t.test('a pool looks for jobs when there may be some of its own', (t) => {
  const own = { 'core/send_mail': true };
  t.ok(concerns('{"count": 2, "tasks": ["core/other", "core/send_mail"]}', own));
  t.notOk(concerns('{"count": 1, "tasks": ["core/other"]}', own));
  for (const unsaid of ['', '{"count": 1}', '{"tasks": "core/other"}', 'null', '{"r": 0.5}'])
    t.ok(concerns(unsaid, own));
  t.end();
});

t.test('no pool listens itself', async (t) => {
  const { pool, close } = open();
  const client = await pool.connect();
  await client.query('LISTEN "jobs:insert"; LISTEN "worker:migrate";');
  t.same((await client.query('select pg_listening_channels()')).rows, []);
  client.release();
  await close(60_000);
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
