import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { visitProspect } from '../../src/recruitment/discovery/visit_prospect.ts';

/** Visits a page for a scan. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), run_id: z.string(), number: z.int() }),
  run: ({ payload, ...context }) => visitProspect(payload, context),
});
