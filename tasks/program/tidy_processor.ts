import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { tidyConnection } from '../../src/program/processors/tidy.ts';

/** Deletes webhook endpoints at a billing processor that are of no connection any more. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => tidyConnection(payload, context),
});
