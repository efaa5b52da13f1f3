import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { Queues } from '../../src/recruitment/sending/queues.ts';

/** Sends what is due from an inbox. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), inbox_id: z.string() }),
  run: ({ payload, use }) => use(Queues).run(payload),
});
