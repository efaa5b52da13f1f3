import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { eraseFromEvents } from '../../src/recruitment/erase.ts';

/** Erases prospects from the events that were not looked through when they were erased: some of them, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ ids: z.array(z.string()), after: z.string() },
  }),
  run: ({ tx, payload }) => eraseFromEvents(tx, payload),
});
