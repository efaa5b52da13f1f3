/** The counters of events and deliveries of a worker. */
import { request_buckets } from '../../core/metrics/metrics.ts';
import { counter, histogram } from '../../core/metrics/registry.ts';
import type { Failure } from './send.ts';

const fan_out = histogram(
  'rail_fan_out_events',
  {
    help: 'Events that one fan-out added to the queues of endpoints. Fan-outs that found none are not counted.',
    row: 'Webhooks',
    title: 'Events fanned out',
    draws: 'sum(rate(rail_fan_out_events_sum[$__rate_interval]))',
  },
  [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000],
);
const attempts = counter(
  'rail_delivery_attempts_total',
  {
    help: 'Webhook requests, by the resulting state of the delivery (delivered, retrying, failed) and by the answer: its class (2xx to 5xx), or why there was none: timeout, refused (the connection), tls, dns, address (one that nothing is sent to), or broken.',
    row: 'Webhooks',
    title: 'Webhook requests by answer',
    draws: 'sum by (answer) (rate(rail_delivery_attempts_total[$__rate_interval]))',
    alerts: [
      {
        name: 'RailDeliveriesFail',
        expr: 'sum(rate(rail_delivery_attempts_total{outcome!="delivered"}[15m])) > 0.5 * sum(rate(rail_delivery_attempts_total[15m]))',
        for: '15m',
        severity: 'warning',
        summary: 'More than half of all webhook requests fail.',
        remedy:
          'Where the answer is dns, tls, timeout or refused for most, look at the network and the name servers of the workers; else at the endpoints that fail.',
      },
    ],
  },
  ['outcome', 'answer'],
);
const attempt_duration = histogram(
  'rail_delivery_attempt_seconds',
  {
    help: 'Duration of webhook requests, including name resolution and connection.',
    row: 'Webhooks',
    title: 'Duration of webhook requests',
  },
  request_buckets,
  ['outcome'],
);
const latency = histogram(
  'rail_delivery_latency_seconds',
  {
    help: 'Time from the commit of an event to the end of the attempt that was acknowledged, first or later. made="late": replays, and events whose fan-out was held up for a minute. Test events are not counted.',
    row: 'Webhooks',
    title: 'Time until a delivery is acknowledged',
  },
  [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 172_800],
  ['attempt', 'made'],
);

const disabled = counter('rail_endpoints_disabled_total', {
  help: 'Endpoints that were turned off because their deliveries failed for days.',
  row: 'Webhooks',
  title: 'Endpoints turned off',
  alerts: [
    {
      name: 'RailEndpointDisabled',
      expr: 'sum(increase(rail_endpoints_disabled_total[1h])) > 0',
      for: '0m',
      severity: 'warning',
      summary: 'An endpoint was turned off because its deliveries failed for days.',
      remedy:
        'Its owner was emailed, and disabled_reason of the endpoint says what failed. Once it answers, it is enabled over the API.',
    },
  ],
});

/** A fan-out took so many events. */
export const fannedOut = (events: number): void => fan_out.observe(events);

export const endpointDisabled = (): void => disabled.inc();

export interface Attempted {
  /** The state of the delivery after the attempt. */
  outcome: 'delivered' | 'retrying' | 'failed';
  status_code: number | null;
  /** Why there was no answer. */
  failure: Failure | undefined;
  duration_ms: number;
  is_first: boolean;
  /** The delivery was made long after its event. */
  is_late: boolean;
  /** From the event's commit to the end of the attempt; undefined for a test event. */
  latency_ms: number | undefined;
}

/** A webhook request was made. */
export function attemptMade({ outcome, status_code, failure, duration_ms, latency_ms, ...of }: Attempted): void {
  attempts.inc({ outcome, answer: failure ?? `${Math.floor((status_code ?? 0) / 100)}xx` });
  attempt_duration.observe({ outcome }, duration_ms / 1_000);
  if (outcome !== 'delivered' || latency_ms === undefined) return;
  const labels = { attempt: of.is_first ? 'first' : 'later', made: of.is_late ? 'late' : 'at_once' };
  latency.observe(labels, latency_ms / 1_000);
}
