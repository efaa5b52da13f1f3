import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { callAbout } from '../../src/program/payouts/sending/call_rail.ts';

/** Asks the rail what became of a payout, and sends what has not arrived. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable().default(null), id: z.string() }),
  run: ({ payload, ...context }) => callAbout(payload, context),
});
