import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Database } from '../postgres/database.ts';
import { type Backlog, type Measured, readBacklogs, showBacklogs } from './backlog.ts';
import { watchPool } from './metrics.ts';
import { content_type, metricsText, watchProcess } from './registry.ts';

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
  backlogs: Backlog[];
  log: Logger;
}

/**
 * Answers `GET /metrics`, for as long as the process lives, on a port of its own.
 * @returns where it listens, and what ends it
 * @throws Error of `listen`, as where the port is taken
 */
export async function serveMetrics({ port, host, database, backlogs, log }: MetricsOptions): Promise<{
  port: number;
  stop(): void;
}> {
  watchProcess();
  watchPool('rail', database);
  const measured = rarely(() => readBacklogs(database, backlogs), log);
  const text = async () => {
    showBacklogs(backlogs, await measured());
    return metricsText();
  };
  const server = createServer(answerWith(text, log));
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

const answerWith =
  (text: () => Promise<string>, log: Logger): RequestListener =>
  async ({ method, url }, response) => {
    if (method !== 'GET' || url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end();
    try {
      const body = await text();
      response.writeHead(200, { 'Content-Type': content_type }).end(body);
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
      .catch((error) => void log.warn({ err: error }, 'the queues could not be read for the metrics'))
      .finally(() => {
        read_at = performance.now();
      });
  return async () => {
    if (!reading || (read_at > 0 && performance.now() - read_at > fresh_ms)) {
      read_at = 0;
      reading = begin();
    }
    const late = new AbortController();
    const tooLong = sleep(max_wait_ms, undefined, { signal: late.signal }).catch(() => undefined);
    return Promise.race([reading, tooLong]).finally(() => late.abort());
  };
}
