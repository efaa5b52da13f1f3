import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { callAbout } from '../../src/program/payouts/sending/call_rail.ts';

/** Asks the rail to pay a payout that was sent just now, or what became of it. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable().default(null), id: z.string() }),
  run: ({ payload, ...context }) => callAbout(payload, context),
});
