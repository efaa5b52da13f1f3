import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { unassign } from '../../src/recruitment/prospects/assign.ts';

/** Takes the prospects from a member who was removed that the request has left. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  most: most_at_once,
  run: ({ tx, payload: { id } }) => unassign(tx, id, most_at_once),
});
