/** The counters of events and deliveries of a worker. */
import { request_buckets } from '../../core/metrics/metrics.ts';
import { counter, histogram } from '../../core/metrics/registry.ts';

const fan_out = histogram(
  'rail_fan_out_events',
  'Events that one fan-out added to the queues of endpoints. Fan-outs that found none are not counted.',
  [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
);
const attempts = counter(
  'rail_delivery_attempts_total',
  'Webhook requests, by the resulting state of the delivery (delivered, retrying, failed) and by the response (2xx, ... or none).',
  ['outcome', 'answer'],
);
const attempt_duration = histogram(
  'rail_delivery_attempt_seconds',
  'Duration of webhook requests, including name resolution and connection.',
  request_buckets,
  ['outcome'],
);
const latency = histogram(
  'rail_delivery_latency_seconds',
  'Time from the commit of an event to the end of the attempt that was acknowledged, first or later. made="late": replays, and events whose fan-out was held up for a minute. Test events are not counted.',
  [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 172_800],
  ['attempt', 'made'],
);

/** A fan-out took so many events. */
export const fannedOut = (events: number): void => fan_out.observe(events);

export interface Attempted {
  /** The state of the delivery after the attempt. */
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
