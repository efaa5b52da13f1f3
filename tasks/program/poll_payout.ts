import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { callAbout } from '../../src/program/payouts/sending/call_rails.ts';

/** Asks the rail what became of a payout. */
export default taskOutsideTransaction({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable().default(null),
    id: z.string(),
  }),
  run: ({ payload: { id, ...cause }, ...context }) => callAbout({ ...cause, payouts: [{ id }] }, context),
});
