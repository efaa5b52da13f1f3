import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { endWithPartner } from '../../src/program/delete_partner.ts';

/** Ends what a partner who was deleted has left, where it is more than a request ends. */
export default batchTask({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ id: z.string(), program_id: z.string() },
  }),
  most: most_at_once,
  run: ({ tx, payload }) => endWithPartner(tx, payload, most_at_once),
});
