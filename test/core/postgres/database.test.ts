import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openDatabase, run, send } from '../../../src/core/postgres/database.ts';
import { isUnavailable } from '../../../src/core/postgres/errors.ts';
import { log, sql, startRail } from '../../harness.ts';
import { startGate } from '../../processes.ts';

const rail = await startRail({ worker: false });
const gate = await startGate(rail.url);
const silence_ms = 400;
const database = openDatabase(gate.url, { size: 2, name: 'rail test', log, silence_ms });
t.teardown(() => database.end());

t.test(
  'a server that is silent while it owes an answer fails what waits, and the next statement goes another way',
  async (t) => {
    const client = await database.connect();
    await sleep(2 * silence_ms);
    const silent = gate.stopAt('before', ({ text }) => text.includes('never answered'));
    const waiting = [run(client, sql`select 'never answered' as it`), run(client, sql`select 'sent behind it' as it`)];
    await silent;
    for (const failure of await Promise.all(waiting.map((one) => one.catch((error) => error)))) {
      t.ok(isUnavailable(failure), failure.message);
      t.match(failure.message, 'silent for 400 ms');
      t.match(failure.stack, /database\.test\.ts/, 'its stack leads here');
    }
    client.release(true);
    gate.cut();
    t.same(await run(database, sql`select 1 as answered`), [{ answered: 1 }]);
  },
);

t.test(
  'a connection that waits for its caller stays, and so does one whose statements are slow but answered',
  async (t) => {
    const client = await database.connect();
    await send(client, { text: 'begin' });
    const [before] = await run<{ pid: number }>(client, sql`select pg_backend_pid() as pid`);
    await sleep(3 * silence_ms);
    for (let nth = 0; nth < 4; nth++) await run(client, sql`select pg_sleep(${silence_ms / 2000})`);
    t.same(await run(client, sql`select pg_backend_pid() as pid`), [before]);
    await send(client, { text: 'commit' });
    client.release();
  },
);
