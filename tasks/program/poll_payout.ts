import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { callAbout } from '../../src/program/payouts/sending/call_rail.ts';

/** Asks the rail to pay a payout that was sent just now, by the attempt of that number, or what became of it. */
export default taskOutsideTransaction({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable().default(null),
    id: z.string(),
    number: z.number().optional(),
  }),
  run: ({ payload, ...context }) => callAbout(payload, context),
});
