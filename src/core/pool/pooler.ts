/** Detects a pooler such as PgBouncer before Postgres that lends a session for no longer than a transaction. */
import pg from 'pg';

const rounds = 3;
const wait_ms = 5_000;

const own_pid = 'select pg_backend_pid() as pid';

/** A pooler makes up what Postgres says of a session when it opens it. */
const isPooled = async (client: pg.Client): Promise<boolean> =>
  (await pidOf(client)) !== (client as unknown as { processID: number }).processID;

async function pidOf(client: pg.Client): Promise<number | undefined> {
  return (await client.query<{ pid: number }>(own_pid)).rows[0]?.pid;
}

/**
 * Two connections that are open at once, and answered by one session of Postgres, are lent it by turns.
 * @param client connected
 * @returns whether each connection has a session of its own
 */
export async function hasSession(client: pg.Client, url: string): Promise<boolean> {
  if (!(await isPooled(client))) return true;
  const other = new pg.Client({
    ...{ connectionString: url, application_name: 'rail', connectionTimeoutMillis: wait_ms, query_timeout: wait_ms },
  });
  other.on('error', () => {});
  try {
    await other.connect();
    for (let round = 0; round < rounds; round++) {
      // In a pool of one session the other connection waits for ever: then this one has it for itself.
      const pid = await pidOf(other).catch(() => undefined);
      if (pid === undefined) return true;
      if (pid === (await pidOf(client))) return false;
    }
    return true;
  } finally {
    await other.end().catch(() => {});
  }
}

export const by_turns =
  "it is reached through a pooler in transaction mode, which only 'npx --no rail api' can use: all else needs sessions of its own, for locks and notifications. Set PgBouncer's pool_mode to session for this database, or connect to Postgres itself.";
