/** Divides the connections of a process, and checks that Postgres has enough for all processes. */
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Database, run } from './database.ts';

/** Processes that run until they are stopped. */
export type Role = 'start' | 'api' | 'worker';

/** The connections of a worker that fetch and complete jobs. */
const least_fetching = 2;
/** More do not make it faster: jobs are fetched and completed many at a time. */
const most_fetching = 10;
const worker_share = 0.4;
/** The connections of an API for transactions: one for each bounded kind (streams, reports, GraphQL), and one for all other requests. */
const least_of_api = 4;
/** The connections of a worker for transactions: a job that counts the sums of reports anew holds two of them, and one is for all other jobs. */
const least_of_jobs = 3;
const least_of_store: Record<Role, number> = {
  api: least_of_api,
  worker: least_of_jobs,
  start: least_of_api + least_of_jobs,
};

/** The connections of a worker besides those that fetch: the session that proves it alive, and one that each of its job pools keeps to itself. */
const heldByWorker = (pools: number): number => 1 + pools;

/** The least connections of a worker. @param pools that its jobs run in */
export const leastOfWorker = (pools: number): number => heldByWorker(pools) + least_fetching;

/** The least `DATABASE_POOL_SIZE` of a process. @param pools that its jobs run in, where it has a worker */
export const leastConnections = (role: Role, pools: number): number =>
  least_of_store[role] + (role === 'api' ? 0 : leastOfWorker(pools));

/** The connections of the parts of a process. */
export interface Split {
  /** For transactions. GraphQL takes its own from these. */
  store: number;
  /** For the session of a worker and the job queue. */
  worker: number;
}

/** Splits the connections of a process between its parts. @param pools that its jobs run in, where it has a worker */
export function splitConnections(role: Role, size: number, pools: number): Split {
  if (role === 'api') return { store: size, worker: 0 };
  const most = heldByWorker(pools) + most_fetching;
  const worker = Math.min(most, Math.max(leastOfWorker(pools), Math.floor(size * worker_share)));
  return { worker, store: size - worker };
}

/** The intervals at which a process counts the others, and warns that Postgres has too few connections for all. */
const look_every_ms = 10_000;
const warn_every_ms = 600_000;

/** The application name of a process' transactions. By it the processes of all machines are counted. */
export const processName = (): string => `rail ${process.pid}@${hostname()}`;

interface Shortage {
  /** Processes of this service on the server, this one included. */
  processes: number;
  /** The connections of each of them, if all are set as this one is. */
  connections_each: number;
  /** Connections of everybody else. */
  others: number;
  max_connections: number;
  /** The part that Postgres reserves for superusers. */
  reserved: number;
}

/** Selects the number of connections that Postgres reserves for superusers and for members of pg_use_reserved_connections. */
export const reserved_connections = sql`(
  current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0)
)`;

/** Left to commands and to people. */
const for_commands = 5;

/**
 * @param size the connections that this process may open
 * @returns how many it should open, so that there are enough for all processes that are there; `shortage` where that is fewer
 */
async function findShare(database: Database, size: number): Promise<{ share: number; shortage?: Shortage }> {
  const [found] = await run<Omit<Shortage, 'connections_each'>>(
    database,
    sql`select
        count(distinct a.application_name) filter (where a.application_name ~ '^rail [0-9]+@') as processes,
        count(*) filter (where a.application_name !~ '^rail( |$)') as others,
        current_setting('max_connections')::int as max_connections,
        ${reserved_connections} as reserved
      from pg_stat_activity a
      -- A user without privileges does not see what the sessions of other users are.
      where coalesce(a.backend_type, 'client backend') = 'client backend' and a.usesysid is not null`,
  );
  const shortage = { ...(found as Omit<Shortage, 'connections_each'>), connections_each: size };
  const { processes, others, max_connections, reserved } = shortage;
  const most = max_connections - reserved;
  const share = Math.floor((most - others - for_commands) / Math.max(processes, 1));
  return processes * size + others > most ? { share, shortage } : { share };
}

interface Sharing {
  role: Role;
  /** `DATABASE_POOL_SIZE`. */
  size: number;
  /** The number of its job pools. */
  pools: number;
  /** The connections of its parts: it is changed. */
  connections: Split;
  log: Logger;
}

/**
 * Keeps all pools of this process to its share of Postgres' connections, as the number of processes changes, and warns as long as there are
 * fewer than all may open. @returns what ends it
 */
export async function shareConnections(
  database: Database,
  { role, size, pools, connections, log }: Sharing,
): Promise<() => void> {
  let warned_at = Number.NEGATIVE_INFINITY;
  const look = async () => {
    const { share, shortage } = await findShare(database, size);
    const taken = connections.store - database.options.max; // by GraphQL, which keeps what it has
    const least = leastConnections(role, pools) + taken;
    const { store, worker } = splitConnections(role, Math.min(size, Math.max(least, share)), pools);
    database.options.max = store - taken;
    Object.assign(connections, { store, worker });
    if (!shortage || performance.now() < warned_at + warn_every_ms) return;
    warned_at = performance.now();
    log.warn(shortage, shortageOf(shortage));
  };
  await look();
  const timer = setInterval(() => void look().catch(() => {}), look_every_ms);
  return () => clearInterval(timer);
}

function shortageOf({ processes, others, max_connections, reserved, connections_each }: Shortage): string {
  const each = `${processes} ${processes === 1 ? 'process' : 'processes'} of Rail may open ${connections_each} connections each`;
  const free = `Postgres has ${max_connections - reserved} (max_connections less those it reserves), and others use ${others}`;
  return `${each}, but ${free}. Each opens fewer meanwhile. Lower DATABASE_POOL_SIZE, or raise max_connections.`;
}
