/** The metrics of requests, jobs and connections, in every process. */
import type { EventEmitter } from 'node:events';
import type pg from 'pg';
import pkg from '../../../package.json' with { type: 'json' };
import { lent_event, waitingFor } from '../pool/lending.ts';
import type { Role } from '../postgres/connections.ts';
import { retried_event } from '../postgres/transaction.ts';
import { counter, gauge, histogram } from './registry.ts';

/** The buckets of the durations of requests, in and out, in seconds. Each is a series for each operation. */
export const request_buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const requests = counter(
  'rail_http_requests_total',
  {
    help: 'HTTP requests that were answered. Paths without an operation are counted under their route, or as none.',
    row: 'API',
    title: 'Requests by status',
    draws: 'sum by (status) (rate(rail_http_requests_total[$__rate_interval]))',
    more: {
      'Requests by operation': 'topk(10, sum by (operation) (rate(rail_http_requests_total[$__rate_interval])))',
      'Errors by operation':
        'topk(10, sum by (operation, status) (rate(rail_http_requests_total{status=~"5..|429"}[$__rate_interval])) > 0)',
    },
    alerts: [
      {
        name: 'RailRequestsFail',
        expr: 'sum(rate(rail_http_requests_total{status=~"5.."}[5m])) > 0.02 * sum(rate(rail_http_requests_total[5m]))',
        for: '5m',
        severity: 'critical',
        summary: 'More than 2 % of requests are answered with a status of 5xx.',
        remedy:
          'Look for the status and its request_id in the log of the APIs: at 503, Postgres is away, full or locked; at 500, the line has the cause.',
      },
    ],
  },
  ['operation', 'status'],
);
const request_duration = histogram(
  'rail_http_request_seconds',
  {
    help: 'Time from the arrival of an HTTP request to the end of its response.',
    row: 'API',
    title: 'Duration of requests',
    more: {
      'Slowest operations':
        'topk(10, histogram_quantile(0.95, sum by (le, operation) (rate(rail_http_request_seconds_bucket[$__rate_interval]))))',
    },
    alerts: [
      {
        name: 'RailRequestsSlow',
        expr: 'histogram_quantile(0.95, sum by (le) (rate(rail_http_request_seconds_bucket{operation=~".+[.].+"}[5m]))) > 2',
        for: '10m',
        severity: 'warning',
        summary: 'One request in twenty takes more than two seconds.',
        remedy:
          'Compare operations on the dashboard; look whether callers wait for connections, and for locks and long transactions in Postgres.',
      },
    ],
  },
  request_buckets,
  ['operation'],
);
const rate_limited = counter('rail_rate_limited_total', {
  help: 'HTTP requests that were refused because their key exceeded its rate limit.',
  row: 'API',
  title: 'Requests over a rate limit',
});

/** An HTTP request was answered. `operation`: its operationId, or its route; bounded by what is mounted. */
export function requestAnswered(operation: string, status: number, ms: number): void {
  requests.inc({ operation, status });
  request_duration.observe({ operation }, ms / 1_000);
}

export const rateLimited = (): void => rate_limited.inc();

const job_duration = histogram(
  'rail_job_seconds',
  {
    help: 'Duration of jobs, by task and outcome: done; retrying (it failed, and is run again later); failed (for good).',
    row: 'Jobs',
    title: 'Jobs by outcome',
    draws: 'sum by (outcome) (rate(rail_job_seconds_count[$__rate_interval]))',
    more: {
      'Busiest tasks': 'topk(10, sum by (task) (rate(rail_job_seconds_sum[$__rate_interval])))',
      'Failures by task':
        'topk(10, sum by (task, outcome) (rate(rail_job_seconds_count{outcome!="done"}[$__rate_interval])) > 0)',
    },
    alerts: [
      {
        name: 'RailJobsRetry',
        expr: 'sum by (task) (rate(rail_job_seconds_count{outcome!="done"}[15m])) > 0.5 * sum by (task) (rate(rail_job_seconds_count[15m]))',
        for: '15m',
        severity: 'warning',
        summary: 'More than half of the jobs of {{ $labels.task }} fail.',
        remedy:
          "'npx --no rail jobs list --task {{ $labels.task }} --state retrying failed' says why, and so does the log of the workers.",
      },
    ],
  },
  [0.01, 0.1, 1, 10, 60],
  ['task', 'outcome'],
);

/** A job has run. `outcome`: whether it is done, is run again later, or has failed for good. */
export const jobRan = (task: string, outcome: 'done' | 'retrying' | 'failed', ms: number): void =>
  job_duration.observe({ task, outcome }, ms / 1_000);

let process_role = '';

/** Says what this process is. */
export function nameProcess(role: Role): void {
  process_role = role;
}

gauge(
  'rail_build_info',
  {
    help: 'Always 1: the version of Rail and of Node that this process runs, and its role (api, worker, or start for both).',
    row: 'Is it well',
    title: 'Processes by version',
    draws: 'count by (role, version) (rail_build_info)',
  },
  ['version', 'node', 'role'],
  (info) => info.set({ version: pkg.version, node: process.versions.node, role: process_role }, 1),
);

const pools = new Map<string, pg.Pool>();

const waits = histogram(
  'rail_pool_wait_seconds',
  {
    help: 'Time that a caller waited for a connection.',
    row: 'Postgres',
    title: 'Wait for a connection',
    alerts: [
      {
        name: 'RailConnectionsScarce',
        expr: 'histogram_quantile(0.95, sum by (le) (rate(rail_pool_wait_seconds_bucket[5m]))) > 0.5',
        for: '10m',
        severity: 'warning',
        summary: 'One caller in twenty waits more than half a second for a connection to Postgres.',
        remedy:
          'Raise DATABASE_POOL_SIZE as far as max_connections allows, add processes, or find what holds connections: long reports, or locks.',
      },
    ],
  },
  [0.001, 0.01, 0.1, 0.5, 1, 5],
);
const retries = counter('rail_transaction_retries_total', {
  help: 'Transactions that were run again because they lost a deadlock or a race.',
  row: 'Postgres',
  title: 'Transactions run again',
});

/** Shows the use of a connection pool from now on, in place of an earlier one of this name. */
export function watchPool(name: string, pool: pg.Pool): void {
  pools.set(name, pool);
  const events = pool as EventEmitter;
  events.on(lent_event, (waited_ms: number) => waits.observe(waited_ms / 1_000));
  events.on(retried_event, () => retries.inc());
}

gauge(
  'rail_pool_connections',
  {
    help: 'Connections of this process to Postgres: in use, idle, and the maximum.',
    row: 'Postgres',
    title: 'Connections of processes',
    draws: 'sum by (pool, state) (rail_pool_connections)',
  },
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
  'rail_pool_waiting',
  { help: 'Callers that wait for a connection.', row: 'Postgres', title: 'Callers that wait for a connection' },
  ['pool'],
  (waiting) => {
    for (const [name, pool] of pools) waiting.set({ pool: name }, waitingFor(pool));
  },
);
