import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { workQueue } from '../../src/program/processors/work.ts';

/** Works on the events of a customer at a billing processor that are pending, one after the other. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), program_id: z.string(), queue: z.string() }),
  run: ({ payload, ...context }) => workQueue(payload, context),
});
