import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { runAddition } from '../../src/recruitment/campaigns/add_prospects.ts';

/** Adds a list of prospects to a campaign. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => runAddition(payload, context),
});
