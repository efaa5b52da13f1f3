/** Who holds a lock that a session waits for. */
import pg from 'pg';

const poll_ms = 500;

export interface BlockerWatch extends AsyncDisposable {
  /** Who held it last, for people: `pid 71 (rail 12@host, idle in transaction)`. */
  last(): string;
}

/** Watches a session, on a connection of its own, for those that it waits for. */
export async function watchBlockers(url: string, pid: number): Promise<BlockerWatch> {
  const client = new pg.Client({ connectionString: url, application_name: 'rail migrate' });
  client.on('error', () => {});
  await client.connect();
  let last = 'another session';
  const look = async () => {
    const { rows } = await client.query<{ blockers: string | null }>(
      `select string_agg(format('pid %s (%s)', a.pid, concat_ws(', ', nullif(a.application_name, ''), a.state)), ' and ' order by a.pid) as blockers
      from pg_stat_activity a where a.pid = any (pg_blocking_pids($1))`,
      [pid],
    );
    last = rows[0]?.blockers ?? last;
  };
  const timer = setInterval(() => void look().catch(() => {}), poll_ms);
  return {
    last: () => last,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await client.end();
    },
  };
}
