import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { removeTag } from '../../src/program/partners/tag.ts';

/** Removes a tag that was deleted from the partners that a request has left. */
export default batchTask({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ id: z.string() },
  }),
  most: most_at_once,
  run: ({ tx, payload }) => removeTag(tx, payload.id, most_at_once),
});
