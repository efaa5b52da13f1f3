import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { stopSomeOf } from '../../src/recruitment/campaigns/end.ts';

/** Stops the campaigns of a brand that was deleted that the request has left. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), brand_id: z.string() }),
  most: most_at_once,
  run: ({ tx, payload: { brand_id } }) => stopSomeOf(tx, brand_id),
});
