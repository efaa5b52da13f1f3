import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { continueReport } from '../../src/program/payouts/files/apply_report.ts';

/** Goes on with the payouts that a bank's report settles. */
export default task({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  run: ({ tx, payload: { id } }) => continueReport(tx, id),
});
