import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { callAbout } from '../../src/program/payouts/sending/call_rails.ts';

/** Asks rails to pay payouts that were sent just now, each by the attempt of its number. */
export default taskOutsideTransaction({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable(),
    payouts: z.array(z.object({ id: z.string(), number: z.number() })),
  }),
  run: ({ payload, ...context }) => callAbout(payload, context),
});
