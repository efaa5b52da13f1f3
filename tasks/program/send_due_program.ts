import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { sendDue } from '../../src/program/payouts/sending/send_many.ts';

/** Sends a program's payouts that are due. */
export default taskOutsideTransaction({
  payload: scheduled.extend({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => sendDue(payload, context),
});
