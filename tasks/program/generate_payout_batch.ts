import { z } from 'zod';
import { batchTask } from '../../src/core/jobs/task.ts';
import { generateStep } from '../../src/program/payouts/batches/generate.ts';

const most = 1000;

/** Creates the payouts of a batch, a step a transaction. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  most,
  run: ({ tx, payload: { id } }) => generateStep(tx, id, most),
});
