import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { Deliverer } from '../../src/webhooks/queue/deliverer.ts';

/** Sends what waits for an endpoint that took long the last time. */
export default taskOutsideTransaction({
  payload: z.object({ endpoint_id: z.string() }),
  run: ({ payload: { endpoint_id }, use }) => use(Deliverer).deliverSlow(endpoint_id),
});
