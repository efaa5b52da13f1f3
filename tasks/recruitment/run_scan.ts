import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { runScan } from '../../src/recruitment/discovery/run_scan.ts';

/** Runs a scan up to its visits. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), id: z.string() }),
  run: ({ payload, ...context }) => runScan(payload, context),
});
