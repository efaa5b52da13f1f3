import { z } from 'zod';
import { task } from '../../src/core/task.ts';
import { takeTurn } from '../../src/webhooks/delivery.ts';

/** Sends what waits for one endpoint. */
export default task({
  payload: z.object({ endpoint_id: z.string() }),
  run: ({ endpoint_id }, context) => takeTurn(endpoint_id, context),
});
