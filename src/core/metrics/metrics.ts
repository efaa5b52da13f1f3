/**
 * What the process counts of itself, and what it reads of the queues, in Prometheus' terms: the one place that knows prom-client. No label
 * may hold what belongs to a tenant, or grow with the number of them.
 */
import type pg from 'pg';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const registry = new Registry();
const registers = [registry];
const request_s = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const requests = new Counter({
  name: 'rail_http_requests_total',
  help: 'HTTP requests that were answered. A path that no operation has is counted under its route, or as none.',
  labelNames: ['operation', 'status'],
  registers,
});
const request_duration = new Histogram({
  name: 'rail_http_request_seconds',
  help: 'From the arrival of an HTTP request to the end of its answer.',
  labelNames: ['operation'],
  buckets: request_s,
  registers,
});
const rate_limited = new Counter({
  name: 'rail_rate_limited_total',
  help: 'HTTP requests that were refused because their key had made too many in the same second.',
  registers,
});
const fan_out = new Histogram({
  name: 'rail_fan_out_events',
  help: 'Events that one fan-out gave their places in the sequences of endpoints; those that found none are left out.',
  buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
  registers,
});
const attempts = new Counter({
  name: 'rail_delivery_attempts_total',
  help: 'Webhook requests made, by what they make of the delivery (delivered, retrying, failed) and by what was answered (2xx, ... or none).',
  labelNames: ['outcome', 'answer'],
  registers,
});
const attempt_duration = new Histogram({
  name: 'rail_delivery_attempt_seconds',
  help: 'How long webhook requests took: name, connection and answer together.',
  labelNames: ['outcome'],
  buckets: request_s,
  registers,
});
const latency = new Histogram({
  name: 'rail_delivery_latency_seconds',
  help: 'From the commit of an event to the end of the attempt that was acknowledged: the first one or a later. Made late: a replay, or the fan-out was held up for a minute. No test events.',
  labelNames: ['attempt', 'made'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 172_800],
  registers,
});

/** An HTTP request was answered. `operation`: its operationId, or its route; bounded by what is mounted. */
export function requestAnswered(operation: string, status: number, ms: number): void {
  requests.inc({ operation, status });
  request_duration.observe({ operation }, ms / 1_000);
}

export const rateLimited = (): void => rate_limited.inc();

/** A fan-out took so many events. */
export const fannedOut = (events: number): void => fan_out.observe(events);

export interface Attempted {
  /** What the attempt makes of its delivery. */
  outcome: 'delivered' | 'retrying' | 'failed';
  status_code: number | null;
  duration_ms: number;
  is_first: boolean;
  /** The delivery was made long after its event. */
  is_late: boolean;
  /** From the event's commit to the end of the attempt; undefined for a test event. */
  latency_ms: number | undefined;
}

/** A webhook request was made. */
export function attemptMade({ outcome, status_code, duration_ms, latency_ms, ...of }: Attempted): void {
  attempts.inc({ outcome, answer: status_code === null ? 'none' : `${Math.floor(status_code / 100)}xx` });
  attempt_duration.observe({ outcome }, duration_ms / 1_000);
  if (outcome !== 'delivered' || latency_ms === undefined) return;
  const labels = { attempt: of.is_first ? 'first' : 'later', made: of.is_late ? 'late' : 'at_once' };
  latency.observe(labels, latency_ms / 1_000);
}

const pools = new Map<string, pg.Pool>();

/** Shows the use of a connection pool from now on, in place of an earlier one of this name. */
export const watchPool = (name: string, pool: pg.Pool): void => void pools.set(name, pool);

new Gauge({
  name: 'rail_pool_connections',
  help: 'Connections to Postgres of this process: in use, idle, and the most that there can be.',
  labelNames: ['pool', 'state'],
  registers,
  collect() {
    for (const [pool, { totalCount, idleCount, options }] of pools) {
      this.set({ pool, state: 'in_use' }, totalCount - idleCount);
      this.set({ pool, state: 'idle' }, idleCount);
      this.set({ pool, state: 'most' }, options.max);
    }
  },
});
new Gauge({
  name: 'rail_pool_waiting',
  help: 'Callers that wait for a connection.',
  labelNames: ['pool'],
  registers,
  collect() {
    for (const [pool, { waitingCount }] of pools) this.set({ pool }, waitingCount);
  },
});

/** What waits in the database, and who works on it. Ages are in seconds. */
export interface Backlog {
  queues: { queue: string; size: number; oldest: number }[];
  jobs: { task: string; state: string; size: number; oldest: number }[];
  lanes: { state: string; size: number }[];
  workers: number;
  schedules: { schedule: string; lag: number }[];
}

const shared = 'The same in every process: take the maximum, not the sum.';
const gauge = <Label extends string>(name: string, help: string, labelNames: Label[]): Gauge<Label> =>
  new Gauge({ name, help: `${help} ${shared}`, labelNames, registers });

const readable = new Gauge({
  name: 'rail_backlog_readable',
  help: 'Whether the queues could be read from Postgres just now: 1, or 0, and then what waits there is left out.',
  registers,
});
const queue_size = gauge(
  'rail_queue_size',
  'What waits: events that nobody has fanned out, deliveries that stand in the sequence of an endpoint, failed deliveries that are tried again later. Counted to 100000.',
  ['queue'],
);
const queue_oldest = gauge(
  'rail_queue_oldest_seconds',
  'How long the first in a queue has been waiting there; for deliveries that are tried again, how long the first is overdue.',
  ['queue'],
);
const jobs = gauge(
  'rail_jobs',
  'Jobs: ready to run, taken by a worker, to be run later, or failed for good. Counted to 100000.',
  ['task', 'state'],
);
const jobs_oldest = gauge(
  'rail_jobs_oldest_seconds',
  'How long the first job has been due or, where a worker has taken it, has been with that.',
  ['task', 'state'],
);
const lanes = gauge(
  'rail_lanes',
  'Endpoints that have deliveries waiting, that a worker sends to now (leased), and whose worker let its lease run out (expired).',
  ['state'],
);
const workers = gauge('rail_workers', 'Workers that are registered.', []);
const schedule_lag = gauge('rail_schedule_lag_seconds', 'How long the first tick that nobody has run is overdue.', [
  'schedule',
]);

/** Takes what was read of the queues; undefined where it could not be. */
function show(backlog: Backlog | undefined): void {
  for (const one of [queue_size, queue_oldest, jobs, jobs_oldest, lanes, workers, schedule_lag]) one.reset();
  readable.set(backlog ? 1 : 0);
  if (!backlog) workers.remove();
  if (!backlog) return;
  for (const { queue, size, oldest } of backlog.queues) {
    queue_size.set({ queue }, size);
    queue_oldest.set({ queue }, oldest);
  }
  for (const { task, state, size, oldest } of backlog.jobs) {
    jobs.set({ task, state }, size);
    jobs_oldest.set({ task, state }, oldest);
  }
  for (const { state, size } of backlog.lanes) lanes.set({ state }, size);
  workers.set(backlog.workers);
  for (const { schedule, lag } of backlog.schedules) schedule_lag.set({ schedule }, lag);
}

/** Counts what Node and the system know of this process, too: from the first call on. */
export function watchProcess(): void {
  if (!registry.getSingleMetric('process_start_time_seconds')) collectDefaultMetrics({ register: registry });
}

export const content_type: string = registry.contentType;

/** Everything, in Prometheus' text format. */
export function render(backlog: Backlog | undefined): Promise<string> {
  show(backlog);
  return registry.metrics();
}
