import { z } from 'zod';
import { batchTask } from '../../src/core/jobs/task.ts';
import { deletePayoutsOf } from '../../src/program/payouts/batches/batch.ts';

const most = 500;

/** Deletes the payouts of a batch that was refused. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  most,
  run: ({ tx, payload: { id } }) => deletePayoutsOf(tx, id, most),
});
