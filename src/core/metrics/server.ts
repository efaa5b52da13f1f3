import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { withLent } from '../pool/lending.ts';
import type { Database } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { type Backlog, type Measured, readBacklogs, showBacklogs } from './backlog.ts';
import { watchPool } from './metrics.ts';
import { metricsText, openMetrics } from './registry.ts';

/** An import of `node:http` would have Node load its `fetch`. */
const { createServer } = process.getBuiltinModule('node:http');

/** However often somebody asks, the queues are read this often at most. */
const fresh_ms = 5_000;
/** What takes longer is left out: who scrapes gives up after ten seconds. */
const max_wait_ms = 4_000;
/** Who scrapes needs few. */
const most_connections = 50;

interface MetricsOptions {
  port: number;
  host: string;
  database: Database;
  /** What `/readyz` says is missing. */
  whyNotReady: (on: Pick<Database, 'query'>) => Promise<string | undefined>;
  backlogs: Backlog[];
  log: Logger;
}

/**
 * Answers `GET /metrics`, for as long as the process lives, on a port of its own; and, as the API does on its port, `GET /healthz`, and
 * `GET /readyz`: 200 once the database is as this process needs it.
 * @returns where it listens, and what ends it
 * @throws Error of `listen`, as where the port is taken
 */
export async function serveMetrics({ port, host, database, whyNotReady, backlogs, log }: MetricsOptions): Promise<{
  port: number;
  stop(): void;
}> {
  await openMetrics();
  watchPool('rail', database);
  const measured = rarely(() => readBacklogs(database, backlogs), log);
  const shown = async (): Promise<Answer> => {
    showBacklogs(backlogs, await measured());
    const { type, text } = await metricsText();
    return [200, type, text];
  };
  const server = createServer(
    answerWith(
      {
        '/metrics': shown,
        '/healthz': async () => json(200, { status: 'ok' }),
        '/readyz': async () =>
          readiness(
            await inTime(
              onKept(database, whyNotReady).catch((error) => unreachable(error, log)),
              'The database does not answer.',
            ),
          ),
      },
      log,
    ),
  );
  server.maxConnections = most_connections;
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop() {
      server.close();
      server.closeAllConnections();
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

const readiness = (reason: string | undefined): Answer =>
  reason === undefined ? json(200, { status: 'ready' }) : json(503, { status: 'not_ready', reason });

function unreachable(error: Error, log: Logger): string {
  log.debug({ err: error }, 'the database cannot be reached');
  return 'The database cannot be reached.';
}

const answerWith =
  (paths: Record<string, () => Promise<Answer>>, log: Logger): RequestListener =>
  async ({ method, url = '' }, response) => {
    const answer = method === 'GET' ? paths[url.split('?')[0] as string] : undefined;
    if (!answer) return void response.writeHead(404).end();
    try {
      const [status, type, body] = await answer();
      response.writeHead(status, { 'Content-Type': type }).end(body);
    } catch (error) {
      log.error({ err: error }, 'the metrics could not be answered');
      response.writeHead(500).end();
    }
  };

/** Reads when what was read last is not fresh any more, never twice at a time. Gives undefined when it fails or takes too long. */
function rarely(read: () => Promise<Measured[]>, log: Logger): () => Promise<Measured[] | undefined> {
  let reading: Promise<Measured[] | undefined> | undefined;
  let read_at = 0;
  const begin = () =>
    read()
      .catch((error) => logFailure(log, error, 'the queues could not be read for the metrics') as undefined)
      .finally(() => {
        read_at = performance.now();
      });
  return async () => {
    if (!reading || (read_at > 0 && performance.now() - read_at > fresh_ms)) {
      read_at = 0;
      reading = begin();
    }
    return inTime(reading, undefined);
  };
}

/** Gives `otherwise` where the work takes longer than whoever asks waits. */
function inTime<T>(work: Promise<T>, otherwise: T): Promise<T> {
  const late = new AbortController();
  const tooLong = sleep(max_wait_ms, otherwise, { signal: late.signal }).catch(() => otherwise);
  return Promise.race([work, tooLong]).finally(() => late.abort());
}
