import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';

/** Sends what waits for one endpoint. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  run: ({ endpoint_id }, { deliverer }) => deliverer.takeTurn(endpoint_id),
});
