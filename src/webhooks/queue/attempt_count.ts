import { timeOfId } from '../../core/values/id.ts';
import { attemptMade } from './metrics.ts';

const outcomes = { delivered: 'delivered', pending: 'retrying', failed: 'failed' } as const;
/** A delivery that was made so long after its event is a replay, or its fan-out was held up. */
const late_ms = 60_000;

interface Attempt {
  status: string;
  attempt?: number;
  at?: string;
  duration_ms?: number;
  status_code?: number | null;
}

/** Counts an attempt, as it was settled, among the metrics. @returns it as it is */
export function counted<T extends Attempt>(of: { event_id: string; delivery_id: string }, settled: T): T {
  const { status, attempt, at = '', duration_ms = 0, status_code = null } = settled;
  const happened = timeOfId(of.event_id);
  attemptMade({
    outcome: outcomes[status as keyof typeof outcomes],
    status_code,
    duration_ms,
    is_first: attempt === 1,
    is_late: timeOfId(of.delivery_id) - happened > late_ms,
    latency_ms: of.event_id.startsWith('evt_test_') ? undefined : Math.max(0, Date.parse(at) + duration_ms - happened),
  });
  return settled;
}
