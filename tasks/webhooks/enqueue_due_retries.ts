import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { deliveryPrefixes } from '../../src/products.ts';
import { enqueueDueRetries } from '../../src/webhooks/queue/due_retries.ts';

/** The delivery sweep of the products whose retries are sent at 1 and 31 minutes past. */
export default taskOutsideTransaction({
  payload: scheduled,
  run: ({ payload: { tick }, store }) => enqueueDueRetries(store.database, tick, deliveryPrefixes('half_hourly')),
});
