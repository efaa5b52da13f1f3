/** Starts and stops the processes that run until they are stopped: start, api, worker. */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import pkg from '../../package.json' with { type: 'json' };
import { type Config, isRunByNpx, misspelt, readConfig } from '../config.ts';
import { announceProcess } from '../core/doctor/process.ts';
import { connectionsThatFit } from '../core/http/connections.ts';
import type { ServerLimits } from '../core/http/server.ts';
import type { Worker } from '../core/jobs/supervisor.ts';
import { watchClock } from '../core/metrics/clock.ts';
import { watchHold } from '../core/metrics/hold.ts';
import { trustedProxies } from '../core/net/client_address.ts';
import {
  leastConnections,
  processName,
  type Role,
  type Split,
  shareConnections,
  splitConnections,
} from '../core/postgres/connections.ts';
import { migrate } from '../core/postgres/migrate.ts';
import type { Store } from '../core/postgres/transaction.ts';
import type { Services } from '../core/resource/services.ts';
import { requireSharedKey } from '../encryption_key.ts';
import {
  createLog,
  findReplicaFault,
  openPostgres,
  openServices,
  openStore,
  reachPostgres,
  readinessOf,
  replicaUrl,
  requireBaseUrl,
} from '../service.ts';
import { collectAtRest } from './small_memory.ts';
import { createStartLog } from './start_log.ts';

/** The time for which a process waits for Postgres when it starts. */
export const max_wait_ms = 60_000;
/** npm passes a Ctrl-C on to a process that the terminal has signalled already: what comes so soon is the same one. */
const same_signal_ms = 500;

const parent_ms = 200;

/** Aborted by the first Ctrl-C or SIGTERM. A later one ends the process on the spot; Postgres then runs on until the next start takes it over. */
export function catchStop(): AbortSignal {
  const stopping = new AbortController();
  let first = 0;
  const stop = () => {
    if (!stopping.signal.aborted) {
      first = performance.now();
      stopping.abort();
    } else if (performance.now() - first > same_signal_ms) {
      process.exit(130);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  if (isRunByNpx()) whenOrphaned(() => stopping.abort());
  return stopping.signal;
}

/** The shell that npx puts in between dies of SIGTERM by itself: that is how the signal gets here. */
function whenOrphaned(then: () => void): void {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && then(), parent_ms).unref();
}

export interface Running {
  config: Config;
  log: Logger;
  url: string;
  store: Store;
  services: Services;
  /** The connections of its parts at the moment. */
  connections: Split;
  stand_ins: StandIns;
}

/** Ends the stand-ins that answer on the ports of the settings until the process listens there itself. */
type StandIns = Partial<Record<'PORT' | 'METRICS_PORT', () => Promise<void>>>;

/**
 * Opens what a process needs, lets it serve until it must stop, and closes everything. `start` brings the database up to date. `api`
 * and `worker` are processes of several, which must share their encryption key, and leave a database of somebody's own as it is.
 *
 * Loads what a role runs once its settings hold and Postgres answers: mistakes are reported at once, and no role loads the code of another.
 */
export async function runProcess(
  role: Role,
  serve: (running: Running, stopping: AbortSignal) => Promise<void>,
): Promise<void> {
  const config = readConfig();
  const mode = role === 'start' ? 'own' : 'use';
  if (mode === 'use') {
    requireSharedKey(config);
    requireBaseUrl(config);
  }
  const endTracing = await traced(role, config);
  const pools = role === 'api' ? 0 : await countPools();
  const connections = connectionsOf(role, config, pools);
  const log = role === 'start' ? createStartLog(config) : createLog(config);
  for (const line of misspelt()) log.warn(line);
  const stopping = catchStop();
  const stand_ins = mode === 'use' ? await standInOf(role, config) : {};
  const postgres = await openPostgres(config, mode, log);
  try {
    let is_shared = false;
    const share = () => {
      is_shared = true;
    };
    const onShared = role === 'api' ? share : undefined;
    const url = await reachPostgres(postgres, config, { log, max_wait_ms, stopping, onShared });
    const ran = mode === 'own' || !config.DATABASE_URL ? await migrate(url, (line) => log.warn(line)) : [];
    if (ran.length > 0) log.info({ count: ran.length }, 'migrated');
    log.debug({ ran }, 'what the migration ran');
    const { writeEvents } = await import('../products.ts');
    const read_url = config.DATABASE_READ_URL && (await replicaUrl(config.DATABASE_READ_URL, onShared));
    const store = openStore(
      url,
      { size: connections.store, name: processName(), is_shared },
      log,
      writeEvents,
      read_url,
    );
    const unshare = await shareConnections(store.database, {
      role,
      size: config.DATABASE_POOL_SIZE,
      pools,
      connections,
      log,
    });
    await warnOfReplica(store, config, log);
    const services = await openServices(config, log, store.database);
    const metrics = await openMetrics({ role, config, url, store, services, stand_ins, log });
    const unwatches = [
      await watchClock(store.database, log),
      await watchHold(store.database, join(config.RAIL_DATA_DIR, 'beat.json'), log),
    ];
    const announced = { role, version: pkg.version, connections: config.DATABASE_POOL_SIZE };
    await announceProcess(store.database, announced, stopping, log);
    const stopCollecting = collectAtRest();
    await serve({ config, log, url, store, services, connections, stand_ins }, stopping).finally(() => {
      stopCollecting();
      for (const unwatch of unwatches) unwatch();
      unshare();
      return metrics?.stop();
    });
  } catch (error) {
    if (!stopping.aborted) throw error;
  } finally {
    await Promise.all([endTracing?.(), ...Object.values(stand_ins).map((end) => end())]);
    await postgres.stop();
  }
}

/**
 * Starts tracing, whose code is loaded only where it is asked for.
 * @returns a function that sends the last spans
 */
async function traced(role: Role, config: Config): Promise<(() => Promise<void>) | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { startTracing } = await import('../tracing.ts');
  return startTracing(config, role);
}

/** Probes are answered from the beginning: whoever restarts what does not answer must not do so because Postgres is away. */
async function standInOf(role: Role, config: Config): Promise<StandIns> {
  const { HOST: host, BASE_URL } = config;
  const stand_ins: StandIns = {};
  for (const setting of role === 'api' ? (['PORT', 'METRICS_PORT'] as const) : (['METRICS_PORT'] as const)) {
    const port = config[setting];
    if (!port) continue; // nobody knows yet which it will be
    const { standIn } = await import('./stand_in.ts');
    stand_ins[setting] = await standIn(port, host, BASE_URL?.startsWith('https:') === true).catch((error) => {
      throw explain(error, { port, host, setting });
    });
  }
  return stand_ins;
}

/** @throws Error when `DATABASE_POOL_SIZE` is too small */
function connectionsOf(role: Role, { DATABASE_POOL_SIZE: size, METRICS_PORT }: Config, pools: number): Split {
  const shows_metrics = METRICS_PORT !== undefined;
  const least = leastConnections(role, pools) + (shows_metrics ? 1 : 0);
  if (size >= least) return splitConnections(role, size, pools);
  const needing = shows_metrics ? `rail ${role} with METRICS_PORT` : `rail ${role}`;
  throw new Error(
    `DATABASE_POOL_SIZE is ${size}, and ${needing} needs ${least} connections at least. Set it to ${least} or more, or leave it unset for 20.`,
  );
}

async function countPools(): Promise<number> {
  const [{ poolsOf }, { extensions }] = await Promise.all([
    import('../core/jobs/extension.ts'),
    import('../products.ts'),
  ]);
  return poolsOf(extensions);
}

/** A replica that is away keeps nothing else from its work: the process starts. */
async function warnOfReplica(store: Store, { DATABASE_READ_URL: url }: Config, log: Logger): Promise<void> {
  const reason = await findReplicaFault(store);
  if (!url || reason === undefined) return;
  log.warn(
    { replica: new URL(url).host, reason },
    'DATABASE_READ_URL does not answer as a replica of DATABASE_URL. Until it does, reports, data teams and GraphQL fail: check it, or leave it unset.',
  );
}

/** Shows the metrics of this process, where `METRICS_PORT` asks for them. */
async function openMetrics({
  role,
  config: { METRICS_PORT: port, HOST: host },
  url,
  store,
  services: { vault },
  stand_ins,
  log,
}: Omit<Running, 'connections'> & { role: Role }) {
  if (port === undefined) return undefined;
  const [{ serveMetrics }, { backlogs }] = await Promise.all([
    import('../core/metrics/server.ts'),
    import('../products.ts'),
  ]);
  await stand_ins.METRICS_PORT?.();
  const metrics = await serveMetrics({
    ...{ role, port, host, url, store },
    readiness: readinessOf(vault),
    backlogs,
    log,
  }).catch((error) => {
    throw explain(error, { port, host, setting: 'METRICS_PORT' });
  });
  log.info({ host, port: metrics.port }, 'metrics ready');
  return metrics;
}

/**
 * Builds the API and listens on the first of the ports that is free.
 * @throws Error that says what to do when none is
 */
export async function listenOn(ports: number[], running: Running): Promise<{ app: FastifyInstance; port: number }> {
  const { HOST: host } = running.config;
  const { buildApi } = await import('../api.ts');
  for (const port of ports) {
    const app = await buildApi({ ...running, limits: limitsOf(running.config) });
    await running.stand_ins.PORT?.();
    try {
      await app.listen({ port, host });
      return { app, port: (app.server.address() as AddressInfo).port };
    } catch (error) {
      await app.close();
      if ((error as { code?: string }).code !== 'EADDRINUSE') throw explain(error, { port, host, setting: 'PORT' });
    }
  }
  throw taken({ port: ports[0] as number, host, setting: 'PORT' });
}

/** The limits of the server. Without a setting, the number of connections follows from the descriptors of this process. */
const limitsOf = ({ MAX_CONNECTIONS, RATE_LIMIT_PER_ADDRESS, TRUSTED_PROXIES }: Config): Partial<ServerLimits> => ({
  connections: MAX_CONNECTIONS ?? connectionsThatFit(),
  address_rate: RATE_LIMIT_PER_ADDRESS,
  ...(TRUSTED_PROXIES === undefined ? {} : { proxies: trustedProxies(TRUSTED_PROXIES) }),
});

interface Place {
  port: number;
  host: string;
  /** The setting that chose the port. */
  setting: string;
}

const taken = ({ port, host, setting }: Place): Error =>
  new Error(`Port ${port} of ${host} is taken: stop what listens there, or set ${setting} to a free one.`);

function explain(error: unknown, place: Place): Error {
  const { port, host, setting } = place;
  const { code, message } = error as { code?: string; message: string };
  if (code === 'EADDRINUSE') return taken(place);
  if (code === 'EACCES') return new Error(`This user may not listen on port ${port}: set ${setting} to 1024 or above.`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new Error(`${host} is no address of this machine: set HOST to one, as in 127.0.0.1 or 0.0.0.0.`);
  return new Error(`Rail cannot listen on port ${port} of ${host}: ${message}`, { cause: error });
}

/** A worker that runs jobs by the settings. */
export async function startWorkerOf({ url, store, services, config, log, connections }: Running): Promise<Worker> {
  const { startWorker } = await import('../worker.ts');
  return startWorker({
    ...{ url, store, services, log },
    concurrency: config.WORKER_CONCURRENCY,
    connections: () => connections.worker,
  });
}
