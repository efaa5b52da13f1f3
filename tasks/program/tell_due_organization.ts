import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { tellDue } from '../../src/program/payouts/sending/due.ts';

const most = 500;

/** Emits `payout.due` for one organization's payouts. */
export default batchTask({
  payload: scheduled.extend({ organization_id: z.string() }),
  most,
  run: ({ tx, payload: { tick } }) => tellDue(tx, tick, most),
});
