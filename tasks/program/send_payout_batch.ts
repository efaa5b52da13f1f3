import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { sendBatch } from '../../src/program/payouts/sending/send_many.ts';

/** Sends the pending payouts of a batch, or the failed ones again. */
export default taskOutsideTransaction({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() },
    retry_requested_at: z.string().optional(),
  }),
  run: ({ payload: { retry_requested_at: requested_at, ...batch }, ...context }) =>
    sendBatch(batch, requested_at === undefined ? { action: 'send' } : { action: 'retry', requested_at }, context),
});
