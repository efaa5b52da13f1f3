/** Finds the sessions that hold a lock which another session waits for. */
import pg from 'pg';
import sql from 'sql-template-tag';
import { withLent } from '../pool/lending.ts';
import { type Database, run } from './database.ts';

const poll_ms = 500;

export interface BlockerWatch extends AsyncDisposable {
  /** The session that held it last, for people: `pid 71 (rail 12@host, idle in transaction)`. */
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

/** So often somebody looks at most, and so often the same blocker is named. */
const look_every_ms = 2_000;
const name_every_ms = 60_000;
/** A look is worth no more time than this. */
const look_ms = 2_000;

interface Log {
  warn(details: object, message: string): void;
}

/** Names in the log who holds up the requests of this process. @returns what is called whenever a request takes long */
export function blockerLog(database: Database, log: Log): () => void {
  let looked_at = Number.NEGATIVE_INFINITY;
  let named: { blockers: string; at: number } | undefined;
  return () => {
    const now = performance.now();
    if (now < looked_at + look_every_ms) return;
    looked_at = now;
    findBlockers(database)
      .then((found) => {
        if (!found || (named?.blockers === found.blockers && now < named.at + name_every_ms)) return;
        named = { blockers: found.blockers, at: now };
        log.warn(found, 'requests wait for locks that other sessions hold: end those that are stuck');
      })
      .catch(() => {});
  };
}

interface Found {
  /** The sessions, such as `pid 71 (psql, idle in transaction)`. */
  blockers: string;
  /** The locked tables, if any. */
  tables: string | null;
}

/** Finds the sessions at the head of the queue: they hold a lock and wait for none. */
async function findBlockers(database: Database): Promise<Found | undefined> {
  const asked = { kind: null, signal: AbortSignal.timeout(look_ms), most_ms: look_ms };
  const { application_name } = database.options as pg.PoolConfig;
  const [row] = await withLent(database, asked, (client) =>
    run<{ blockers: string | null; tables: string | null }>(
      client,
      sql`
        with waiting as (
          select w.pid, unnest(pg_blocking_pids(w.pid)) as blocked_by
          from pg_stat_activity w
          where w.datname = current_database() and w.application_name = ${application_name} and w.wait_event_type = 'Lock'
        )
        select
          string_agg(distinct format('pid %s (%s)', b.pid, concat_ws(', ', nullif(b.application_name, ''), b.state)), ' and ') as blockers,
          string_agg(distinct l.relation::regclass::text, ', ') as tables
        from waiting w
        join pg_stat_activity b on b.pid = w.blocked_by and b.wait_event_type is distinct from 'Lock'
        left join pg_locks l on l.pid = w.pid and not l.granted`,
    ),
  );
  return row?.blockers ? { blockers: row.blockers, tables: row.tables } : undefined;
}
