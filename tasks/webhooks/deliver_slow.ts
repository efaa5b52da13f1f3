import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';

/** Sends what waits for an endpoint that took long the last time. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  run: ({ endpoint_id }, { deliverer }) => deliverer.takeSlowTurn(endpoint_id),
});
