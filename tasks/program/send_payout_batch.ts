import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { sendBatch } from '../../src/program/payouts/sending/send_many.ts';

/** Sends the pending payouts of a batch. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  run: ({ payload, ...context }) => sendBatch(payload, context),
});
