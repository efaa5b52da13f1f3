import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { readMailbox } from '../../src/recruitment/sending/look_up.ts';

/** Looks in a mailbox for emails that may have been sent, and adds copies of those that were. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), inbox_id: z.string() }),
  run: ({ payload, ...context }) => readMailbox(context, payload),
});
