import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { resolve } from '../../src/program/processors/resolve.ts';

/** Asks a billing processor what an event has waited for. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => resolve(payload, context),
});
