import type { Outcome, Sendable } from './send.ts';

/** Attempts a delivery gets, and the least wait before each but the first, in seconds from the previous one. */
export const waits_s = [60, 300, 1_800, 7_200, 43_200, 86_400, 86_400];
export const most_attempts = waits_s.length + 1;

/** A delivery that stands in its endpoint's sequence. */
export interface Place extends Sendable {
  place: number;
  /** The endpoint is switched off, or the event's week was dropped: it is passed over. */
  cancelled: boolean;
}

/** What is written of a delivery when its place was passed. */
export interface Settled {
  delivery_id: string;
  place: number;
  status: string;
  attempt?: number;
  at?: string;
  duration_ms?: number;
  status_code?: number | null;
  response_body?: string | null;
  error?: string | null;
  next_attempt_at?: string | null;
}

/** What an attempt makes of its delivery. */
export function settle({ delivery_id, place, event_id, attempt: before }: Place, outcome: Outcome): Settled {
  const attempt = before + 1;
  const { acknowledged, ...logged } = outcome;
  const settled = { delivery_id, place, attempt, ...logged };
  if (acknowledged) return { ...settled, status: 'delivered' };
  if (attempt >= most_attempts || isTest(event_id)) return { ...settled, status: 'failed' };
  return { ...settled, status: 'pending', next_attempt_at: nextAttemptAt(outcome.at, attempt) };
}

export const cancel = ({ delivery_id, place }: Place): Settled => ({ delivery_id, place, status: 'cancelled' });

/** A test event is "sent once and not retried". */
const isTest = (event_id: string): boolean => event_id.startsWith('evt_test_');

/** "Retry waits, measured from the previous attempt": when attempt `made` + 1 may be made at the earliest. */
export const nextAttemptAt = (previous_at: string, made: number): string =>
  new Date(Date.parse(previous_at) + (waits_s[made - 1] as number) * 1_000).toISOString();
