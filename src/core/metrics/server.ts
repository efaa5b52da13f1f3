import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { withLent } from '../pool/lending.ts';
import type { Role } from '../postgres/connections.ts';
import type { Database } from '../postgres/database.ts';
import type { Store } from '../postgres/transaction.ts';
import type { Backlog } from './backlog.ts';
import { heldNow } from './hold.ts';
import { nameProcess, watchPool } from './metrics.ts';
import { inTime, openReader } from './reader.ts';
import { isVerbose, type Readiness, unreachable, verboseReadiness } from './readiness.ts';
import { metricsText, openMetrics } from './registry.ts';

/** An import of `node:http` would have Node load its `fetch`. */
const { createServer } = process.getBuiltinModule('node:http');

/** Who probes gives up soon. */
const max_wait_ms = 4_000;
/** The most connections: a scraper needs few. */
const most_connections = 50;

interface MetricsOptions {
  role: Role;
  port: number;
  host: string;
  /** The URL of Postgres: the metrics have a connection of their own. */
  url: string;
  store: Store;
  /** The conditions of `/readyz`. */
  readiness: Readiness;
  backlogs: Backlog[];
  log: Logger;
}

/**
 * Answers `GET /metrics`, for as long as the process lives, on a port of its own; and, as the API does on its port, `GET /healthz`, and
 * `GET /readyz`: 200 once the database is as this process needs it.
 * @returns where it listens, and what ends it
 * @throws Error of `listen`, as where the port is taken
 */
export async function serveMetrics(options: MetricsOptions): Promise<{
  port: number;
  stop(): Promise<void>;
}> {
  const { role, port, host, store, readiness, log } = options;
  const { database, replica } = store;
  await openMetrics();
  nameProcess(role);
  watchPool('rail', database);
  const reader = openReader({ ...options, replica });
  // The connection is one of those that this process may open.
  database.options.max -= 1;
  const shown = async (): Promise<Answer> => {
    await reader.show();
    const { type, text } = await metricsText();
    return [200, type, text];
  };
  const server = createServer(
    answerWith(
      {
        '/metrics': shown,
        '/healthz': async () => json(200, { status: 'ok' }),
        '/readyz': (url) =>
          isVerbose(url) ? readyInDetail(database, readiness, log) : ready(database, readiness, log),
      },
      log,
    ),
  );
  server.maxConnections = most_connections;
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      server.close();
      server.closeAllConnections();
      await reader.close();
    },
  };
}

/** Status, content type and body. */
type Answer = [status: number, content_type: string, body: string];

const json = (status: number, body: object): Answer => [
  status,
  'application/json; charset=utf-8',
  JSON.stringify(body),
];

/** On a connection that requests leave to probes, for as long as somebody waits. */
const onKept = <Result>(database: Database, work: (on: Pick<Database, 'query'>) => Promise<Result>): Promise<Result> =>
  withLent(database, { kind: null, signal: AbortSignal.timeout(max_wait_ms), most_ms: max_wait_ms }, work);

async function ready(database: Database, { why }: Readiness, log: Logger): Promise<Answer> {
  const asked = onKept(database, why).catch((error: Error) => {
    log.debug({ err: error }, 'the database cannot be reached');
    return 'The database cannot be reached.';
  });
  const reason = await inTime(asked, max_wait_ms, 'The database does not answer.');
  return reason === undefined
    ? json(200, { status: 'ready', ...heldNow() })
    : json(503, { status: 'not_ready', reason });
}

async function readyInDetail(database: Database, { conditions }: Readiness, log: Logger): Promise<Answer> {
  const asked = onKept(database, conditions).catch((error: Error) => {
    log.debug({ err: error }, 'the database cannot be reached');
    return [unreachable];
  });
  const body = verboseReadiness(await inTime(asked, max_wait_ms, [unreachable]), database);
  return json(body.status === 'ready' ? 200 : 503, body);
}

const answerWith =
  (paths: Record<string, (url: string) => Promise<Answer>>, log: Logger): RequestListener =>
  async ({ method, url = '' }, response) => {
    const answer = method === 'GET' ? paths[url.split('?')[0] as string] : undefined;
    if (!answer) return void response.writeHead(404).end();
    try {
      const [status, type, body] = await answer(url);
      response.writeHead(status, { 'Content-Type': type }).end(body);
    } catch (error) {
      log.error({ err: error }, 'the metrics could not be answered');
      response.writeHead(500).end();
    }
  };
