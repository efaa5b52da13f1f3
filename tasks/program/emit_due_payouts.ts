import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { emitDue } from '../../src/program/payouts/sending/due.ts';

/** Emits `payout.due` for one organization's payouts. */
export default taskOutsideTransaction({
  payload: scheduled.extend({ organization_id: z.string() }),
  run: ({ payload, ...context }) => emitDue(payload, context),
});
