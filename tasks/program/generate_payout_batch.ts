import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { generateBatch } from '../../src/program/payouts/batches/generate.ts';

/** Creates the payouts of a batch. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  run: ({ payload, ...context }) => generateBatch(payload, context),
});
