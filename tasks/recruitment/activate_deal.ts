import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { activateDeal } from '../../src/recruitment/deals/activate.ts';

/** Makes the prospect of an agreed deal a partner of the program. */
export default taskOutsideTransaction({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable(),
    deal_id: z.string(),
    version: z.int(),
  }),
  run: ({ payload, ...context }) => activateDeal(payload, context),
});
