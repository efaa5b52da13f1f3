/** What every process counts of its requests and its connections. */
import type pg from 'pg';
import { waitingFor } from '../pool/lending.ts';
import { serverConnections } from '../postgres/connections.ts';
import { counter, gauge, histogram } from './registry.ts';

/** Of the durations of requests, in and out, in seconds. */
export const request_buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const requests = counter(
  'rail_http_requests_total',
  'HTTP requests that were answered. Paths without an operation are counted under their route, or as none.',
  ['operation', 'status'],
);
const request_duration = histogram(
  'rail_http_request_seconds',
  'Time from the arrival of an HTTP request to the end of its response.',
  request_buckets,
  ['operation'],
);
const rate_limited = counter(
  'rail_rate_limited_total',
  'HTTP requests that were refused because their key exceeded its rate limit.',
);

/** An HTTP request was answered. `operation`: its operationId, or its route; bounded by what is mounted. */
export function requestAnswered(operation: string, status: number, ms: number): void {
  requests.inc({ operation, status });
  request_duration.observe({ operation }, ms / 1_000);
}

export const rateLimited = (): void => rate_limited.inc();

const pools = new Map<string, pg.Pool>();

/** Shows the use of a connection pool from now on, in place of an earlier one of this name. */
export const watchPool = (name: string, pool: pg.Pool): void => void pools.set(name, pool);

gauge(
  'rail_pool_connections',
  'Connections of this process to Postgres: in use, idle, and the maximum.',
  ['pool', 'state'],
  (connections) => {
    for (const [pool, { totalCount, idleCount, options }] of pools) {
      connections.set({ pool, state: 'in_use' }, totalCount - idleCount);
      connections.set({ pool, state: 'idle' }, idleCount);
      connections.set({ pool, state: 'most' }, options.max);
    }
  },
);
gauge(
  'rail_postgres_connections',
  'Connections of the Postgres server, read every ten seconds: open, and the maximum.',
  ['state'],
  (connections) => {
    for (const [state, count] of Object.entries(serverConnections() ?? {})) connections.set({ state }, count);
  },
);
gauge('rail_pool_waiting', 'Callers that wait for a connection.', ['pool'], (waiting) => {
  for (const [name, pool] of pools) waiting.set({ pool: name }, waitingFor(pool));
});
