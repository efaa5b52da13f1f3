/** How many connections a process opens, and whether Postgres has enough for all processes. */
import { hostname } from 'node:os';
import sql from 'sql-template-tag';
import { type Database, run } from './database.ts';

/** A worker has one connection that proves it alive, one for each of its job pools to listen on, and some that fetch and complete jobs. */
const least_of_worker = 6;
/** More do not make it faster: jobs are fetched and completed many at a time. */
const most_of_worker = 16;
const worker_share = 0.4;
const least_of_store = 2;

/** The least `DATABASE_POOL_SIZE` of a process that runs jobs. */
export const least_with_worker = least_of_worker + least_of_store;

/** Splits the connections of a process between its worker (its session and the job queue) and its transactions. */
export function splitConnections(size: number): { worker: number; store: number } {
  const worker = Math.min(most_of_worker, Math.max(least_of_worker, Math.floor(size * worker_share)));
  return { worker, store: size - worker };
}

/** What Postgres shows the transactions of a process as. By it the processes of all machines are counted. */
export const processName = (): string => `rail ${process.pid}@${hostname()}`;

export interface Shortage {
  /** Processes of this service on the server, this one included. */
  processes: number;
  /** What each of them may open, if all are set as this one is. */
  connections_each: number;
  /** Connections of everybody else. */
  others: number;
  max_connections: number;
  /** Of these, what Postgres keeps for superusers. */
  reserved: number;
}

/** @param size the connections that this process may open  @returns undefined where there are enough for all */
export async function findShortage(database: Database, size: number): Promise<Shortage | undefined> {
  const [found] = await run<Omit<Shortage, 'connections_each'>>(
    database,
    sql`select
        count(distinct a.application_name) filter (where a.application_name ~ '^rail [0-9]+@') as processes,
        count(*) filter (where a.application_name !~ '^rail( |$)') as others,
        current_setting('max_connections')::int as max_connections,
        current_setting('superuser_reserved_connections')::int
          + coalesce(current_setting('reserved_connections', true)::int, 0) as reserved
      from pg_stat_activity a
      -- Of the sessions of other users, a user without privileges does not see what they are.
      where coalesce(a.backend_type, 'client backend') = 'client backend' and a.usesysid is not null`,
  );
  const shortage = { ...(found as Omit<Shortage, 'connections_each'>), connections_each: size };
  const needed = shortage.processes * size + shortage.others;
  return needed > shortage.max_connections - shortage.reserved ? shortage : undefined;
}
