import type { Outcome, Sendable } from './send.ts';

/** Attempts a delivery gets, and the least wait before each but the first, in seconds from the previous one. */
export const waits_s = [60, 300, 1_800, 7_200, 43_200, 86_400, 86_400];
export const most_attempts = waits_s.length + 1;

/** A delivery in its endpoint's queue. */
export interface QueuedDelivery extends Sendable {
  queue_position: number;
  /** The endpoint is disabled, or the event's week was dropped: it is passed over. */
  cancelled: boolean;
}

/** The result of a delivery that leaves the queue: after an attempt, or cancelled without one. */
export interface DeliveryResult {
  delivery_id: string;
  queue_position: number;
  status: string;
  attempt?: number;
  at?: string;
  duration_ms?: number;
  status_code?: number | null;
  response_body?: string | null;
  error?: string | null;
  url?: string;
  rail_signature?: string | null;
  webhook_signature?: string | null;
  next_attempt_at?: string | null;
}

/** Returns the delivery's result after an attempt. */
export function resultOf(
  { delivery_id, queue_position, event_id, attempt: before }: QueuedDelivery,
  outcome: Omit<Outcome, 'failure'>,
): DeliveryResult {
  const attempt = before + 1;
  const { acknowledged, retry_after_s = 0, ...logged } = outcome;
  const result = { delivery_id, queue_position, attempt, ...logged };
  if (acknowledged) return { ...result, status: 'delivered' };
  if (attempt >= most_attempts || isTest(event_id)) return { ...result, status: 'failed' };
  return { ...result, status: 'pending', next_attempt_at: nextAttemptAt(outcome.at, attempt, retry_after_s) };
}

export const cancelled = ({ delivery_id, queue_position }: QueuedDelivery): DeliveryResult => ({
  delivery_id,
  queue_position,
  status: 'cancelled',
});

/** A test event is "sent once and not retried". */
const isTest = (event_id: string): boolean => event_id.startsWith('evt_test_');

/** "Retry waits, measured from the previous attempt": when the attempt after `attempt` may be made at the earliest. */
export const nextAttemptAt = (previous_at: string, attempt: number, least_s = 0): string =>
  new Date(Date.parse(previous_at) + Math.max(waits_s[attempt - 1] as number, least_s) * 1_000).toISOString();
