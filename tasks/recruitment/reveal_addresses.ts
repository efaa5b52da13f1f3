import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { runReveal } from '../../src/recruitment/discovery/run_reveal.ts';

/** Looks for the addresses of a prospect. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), prospect_id: z.string() }),
  run: ({ payload, ...context }) => runReveal(payload, context),
});
