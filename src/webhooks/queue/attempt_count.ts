import { timeOfId } from '../../core/values/id.ts';
import type { DeliveryResult, QueuedDelivery } from './delivery.ts';
import { attemptMade } from './metrics.ts';
import type { Failure } from './send.ts';

const outcomes = { delivered: 'delivered', pending: 'retrying', failed: 'failed' } as const;
/** A delivery that was made so long after its event is a replay, or its fan-out was held up. */
const late_ms = 60_000;

/** Counts an attempt among the metrics. @returns its result as it is */
export function counted(
  delivery: Pick<QueuedDelivery, 'event_id' | 'delivery_id'>,
  result: DeliveryResult,
  failure: Failure | undefined,
): DeliveryResult {
  const { status, attempt, at = '', duration_ms = 0, status_code = null } = result;
  const { event_id, delivery_id } = delivery;
  const happened = timeOfId(event_id);
  attemptMade({
    outcome: outcomes[status as keyof typeof outcomes],
    ...{ status_code, failure },
    duration_ms,
    is_first: attempt === 1,
    is_late: timeOfId(delivery_id) - happened > late_ms,
    latency_ms: event_id.startsWith('evt_test_') ? undefined : Math.max(0, Date.parse(at) + duration_ms - happened),
  });
  return result;
}
