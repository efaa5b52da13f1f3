import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Database, openDatabase, run, send } from '../../../src/core/postgres/database.ts';
import { isUnavailable } from '../../../src/core/postgres/errors.ts';
import { type Tx, transaction } from '../../../src/core/postgres/transaction.ts';
import { eventually, log, patient_database, sql, startRail } from '../../harness.ts';
import { startGate } from '../../processes.ts';

const rail = await startRail({ worker: false });
const gate = await startGate(rail.url);
/** Longer than a process of a busy machine stands still: its timers go off before it reads what has come meanwhile. */
const silence_ms = 2_000;

t.test(
  'a server that is silent while it owes an answer fails what waits, and the next statement goes another way',
  async (t) => {
    const database = openDatabase(gate.url, { size: 2, name: 'rail test', log, silence_ms });
    t.teardown(() => database.end());
    const client = await database.connect();
    await sleep(1.2 * silence_ms);
    const silent = gate.stopAt('before', ({ text }) => text.includes('never answered'));
    const waiting = [run(client, sql`select 'never answered' as it`), run(client, sql`select 'sent behind it' as it`)];
    await silent;
    for (const failure of await Promise.all(waiting.map((one) => one.catch((error) => error)))) {
      t.ok(isUnavailable(failure), failure.message);
      t.match(failure.message, `silent for ${silence_ms} ms`);
      t.match(failure.stack, /database\.test\.ts/, 'its stack leads here');
    }
    client.release(true);
    gate.cut();
    t.same(await run(database, sql`select 1 as answered`), [{ answered: 1 }]);
  },
);

t.test('a statement that was sent and not waited for fails its transaction, whatever came of it', async (t) => {
  const { organization_id } = await rail.organization();
  const kept = async () => rail.query(sql`select o.name from core.organization o where o.id = ${organization_id}`);
  const before = await kept();
  const failureOf = (after: (tx: Tx) => Promise<unknown>) =>
    transaction(rail.store, { organization_id: null, request_id: null }, async (tx) => {
      tx.send(sql`update core.organization o set name = 'Sent' where o.id = ${organization_id}`);
      tx.send(sql`select 1 / 0 as it`);
      return after(tx);
    }).catch((error) => error);
  t.match(await failureOf(async () => 'done'), { code: '22012' }, 'by the commit');
  t.match(await failureOf((tx) => tx.all(sql`select 2 as it`)), { code: '22012' }, 'in place of what fails behind it');
  t.match(await failureOf(() => Promise.reject(new Error('mine'))), { message: 'mine' });
  t.same(await kept(), before);
});

t.test(
  'a connection that waits for its caller stays, and so does one whose statements are slow but answered',
  async (t) => {
    const database = openDatabase(rail.url, { size: 2, name: 'rail test', log, silence_ms });
    t.teardown(() => database.end());
    const client = await database.connect();
    await send(client, { text: 'begin' });
    const [before] = await run<{ pid: number }>(client, sql`select pg_backend_pid() as pid`);
    await sleep(1.2 * silence_ms);
    for (let nth = 0; nth < 3; nth++) await run(client, sql`select pg_sleep(${(0.4 * silence_ms) / 1000})`);
    t.same(await run(client, sql`select pg_backend_pid() as pid`), [before]);
    await send(client, { text: 'commit' });
    client.release();
  },
);

/** Waits until the pool has its connection, which a busy machine may not open in time. */
const opened = (pool: Database): Promise<void> =>
  eventually(
    () =>
      run(pool, sql`select 1`).then(
        () => true,
        () => false,
      ),
    'the connection to be opened in time',
  );

t.test('a caller waits for a connection that is lent out longer than a server may take to open one', async (t) => {
  const connect_ms = 1_000;
  const busy = openDatabase(rail.url, { size: 1, name: 'rail test', connect_ms });
  t.teardown(() => busy.end());
  await opened(busy);
  const holding = run(busy, sql`select pg_sleep(${(1.5 * connect_ms) / 1000})`);
  t.same(await run(busy, sql`select 1 as answered`), [{ answered: 1 }]);
  await holding;

  const impatient = openDatabase(rail.url, { size: 1, name: 'rail test', wait_ms: 100 });
  t.teardown(() => impatient.end());
  await opened(impatient);
  const holder = await impatient.connect();
  t.ok(isUnavailable(await run(impatient, sql`select 1`).catch((error) => error)));
  holder.release();
});

t.test('a server that accepts a connection and says nothing is unavailable', async (t) => {
  const mute = createServer().listen(0, '127.0.0.1');
  await once(mute, 'listening');
  t.teardown(() => mute.close());
  const url = new URL(rail.url);
  url.port = String((mute.address() as AddressInfo).port);
  const unanswered = openDatabase(url.href, { size: 1, name: 'rail test', connect_ms: 100 });
  t.teardown(() => unanswered.end());
  t.ok(isUnavailable(await run(unanswered, sql`select 1`).catch((error) => error)));
});

t.test('a connection whose settings fail is lent to nobody', async (t) => {
  const refused = openDatabase(rail.url, {
    size: 1,
    name: 'rail test',
    statement_ms: -2,
    connect_ms: 60_000,
    wait_ms: 60_000,
  });
  t.teardown(() => refused.end());
  t.match(await run(refused, sql`select 1`).catch((error) => error), { code: '22023' });
  t.equal(refused.totalCount, 0);
});

t.test('a pool that may open fewer than it has closes the others while it is in use', async (t) => {
  const pool = openDatabase(rail.url, { size: 4, name: 'rail test', ...patient_database });
  t.teardown(() => pool.end());
  let isOver = false;
  const use = async () => {
    while (!isOver) await run(pool, sql`select 1`);
  };
  const uses = Array.from({ length: 12 }, use);
  await eventually(() => pool.totalCount === 4, 'all connections to be opened');
  pool.options.max = 2;
  await eventually(() => pool.totalCount === 2, 'two to be closed');
  isOver = true;
  await Promise.all(uses);
});
