import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { openDatabase, run } from '../../../src/core/postgres/database.ts';
import { transaction } from '../../../src/core/postgres/transaction.ts';
import { writeEvents } from '../../../src/products.ts';
import { reachPostgres } from '../../../src/service.ts';
import { log, patient_database, sql, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false });

interface Server {
  socket: Socket;
  /** The client that has the session; undefined while it is free. */
  client: Socket | undefined;
}

/**
 * A pooler as PgBouncer is one: it takes no settings as startup parameters, makes up the process ids of its sessions, and in transaction mode
 * gives each transaction the first session of Postgres that is free. Logins it passes on.
 */
async function startPooler(mode: 'session' | 'transaction'): Promise<string> {
  const inside = new URL(rail.url);
  const port = Number(inside.port);
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const pooler = createServer((client) => {
    const socket = connect(port, '127.0.0.1');
    const own: Server = { socket, client };
    let is_in = false;
    for (const one of [client, socket]) sockets.add(one.on('error', () => {}));
    client.on('data', (chunk) => {
      if (!is_in && /statement_timeout|lock_timeout/.test(chunk.toString('latin1'))) {
        const text = 'SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0';
        const head = Buffer.alloc(5, 'E');
        head.writeInt32BE(4 + text.length, 1);
        return void client.end(Buffer.concat([head, Buffer.from(text)]));
      }
      const held = servers.find((one) => one.client === client);
      const server = is_in ? (held ?? servers.find((one) => !one.client) ?? own) : own;
      server.client = client;
      server.socket.write(chunk);
    });
    let rest = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const message = Buffer.from(rest.subarray(0, 1 + rest.readInt32BE(1)));
        rest = rest.subarray(message.length);
        const type = String.fromCharCode(message[0] as number);
        if (type === 'K') message.writeInt32BE(4_000_000 + sockets.size, 5);
        own.client?.write(message);
        const is_idle = type === 'Z' && message[5] === 'I'.charCodeAt(0);
        if (!is_idle) continue;
        if (!is_in && mode === 'transaction') servers.push(own);
        is_in = true;
        if (mode === 'transaction') own.client = undefined;
      }
    });
  });
  pooler.listen(0, '127.0.0.1');
  await once(pooler, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    pooler.close();
  });
  inside.hostname = '127.0.0.1';
  inside.port = String((pooler.address() as AddressInfo).port);
  return inside.href;
}

const reach = (url: string) => reachPostgres({ url: '' }, { DATABASE_URL: url }, { log, max_wait_ms: 0 });

t.test('a pooler in session mode is as good as Postgres, limits of statements included', async (t) => {
  const url = await reach(await startPooler('session'));
  const database = openDatabase(url, { ...patient_database, statement_ms: 12_345, size: 2, name: 'rail pooled' });
  t.teardown(() => database.end());
  const limits = await Promise.all(
    [1, 2].map(() =>
      run(database, sql`select current_setting('statement_timeout') as most, pg_sleep(0.1)::text as slept`),
    ),
  );
  t.match(limits, [[{ most: '12345ms' }], [{ most: '12345ms' }]]);
});

t.test('a pooler in transaction mode is refused with what to set, but for the API', async (t) => {
  const pooler = await startPooler('transaction');
  await t.rejects(reach(pooler), /pooler in transaction mode.*pool_mode to session/);
  let is_shared = false;
  const onShared = () => {
    is_shared = true;
  };
  const url = await reachPostgres({ url: '' }, { DATABASE_URL: pooler }, { log, max_wait_ms: 0, onShared });
  const database = openDatabase(url, { ...patient_database, is_shared, size: 4, name: 'rail pooled' });
  t.teardown(() => database.end());
  const { organization_id } = await rail.organization();
  const names = await Promise.all(
    Array.from({ length: 12 }, async (_, nth) => {
      const opening = { organization_id, request_id: null };
      const [row] = await transaction({ database, writeEvents }, opening, (tx) =>
        tx.all<{ nth: number }>(sql`select ${nth}::integer as nth`),
      );
      const [plain] = await run<{ nth: number }>(
        database,
        sql`select ${nth}::integer as nth, current_setting('statement_timeout') as most`,
      );
      return [row?.nth, plain?.nth];
    }),
  );
  t.same(
    names,
    Array.from({ length: 12 }, (_, nth) => [nth, nth]),
  );
});
