import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { dissolve } from '../../src/program/partners/group.ts';

/** Moves what is left in a group that was deleted, where it is more than a request moves. */
export default batchTask({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ id: z.string(), program_id: z.string() },
  }),
  most: most_at_once,
  run: ({ tx, payload }) => dissolve(tx, payload, most_at_once),
});
