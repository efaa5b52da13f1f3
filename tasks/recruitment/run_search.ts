import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { runSearch } from '../../src/recruitment/discovery/run_search.ts';

/** Runs a search. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => runSearch(payload, context),
});
