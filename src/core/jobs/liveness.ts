import { hostname } from 'node:os';
import pg from 'pg';
import { newId } from '../values/id.ts';

/** A worker process as the database knows it: it lives for as long as its session does. */
export interface Liveness {
  worker_id: string;
  /** Settles when the session is lost: from then on others take this worker for dead. */
  lost: Promise<void>;
  addPool(pool_id: string): Promise<void>;
  /** Calls whoever wants to hear of a channel's notifications, for as long as the session lives. */
  listen(channel: string, hear: (payload: string) => void): Promise<void>;
  end(): Promise<void>;
}

/**
 * Registers this process and holds its session lock. A process that dies (kill -9) loses it at once; one whose host vanishes, when the
 * server's keep-alive finds nobody (about 20 seconds). In as long this process finds out that the server vanished.
 */
export async function proveLife(url: string): Promise<Liveness> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'rail worker',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  });
  const lost = new Promise<void>((resolve) => {
    client.on('error', () => resolve());
    client.on('end', () => resolve());
  });
  const worker_id = newId('worker');
  try {
    await client.connect();
    await register(client, worker_id);
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
  return {
    worker_id,
    lost,
    async addPool(pool_id) {
      await client.query('update core.worker set pool_ids = array_append(pool_ids, $2) where id = $1', [
        worker_id,
        pool_id,
      ]);
    },
    async listen(channel, hear) {
      client.on('notification', (heard) => heard.channel === channel && hear(heard.payload ?? ''));
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
    },
    async end() {
      await client.query('delete from core.worker where id = $1', [worker_id]).catch(() => {});
      await client.end().catch(() => {});
    },
  };
}

/** In one transaction, so that nobody sees the row before its lock is held. */
async function register(client: pg.Client, worker_id: string): Promise<void> {
  await client.query('begin');
  await client.query('set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 2');
  const { rows } = await client.query<{ lock_key: number }>(
    'insert into core.worker (id, host, process_id) values ($1, $2, $3) returning lock_key',
    [worker_id, hostname(), process.pid],
  );
  await client.query('select pg_advisory_lock(1, $1)', [rows[0]?.lock_key]);
  await client.query('commit');
}
