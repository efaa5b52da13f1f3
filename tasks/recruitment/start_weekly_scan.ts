import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { startWeeklyScan } from '../../src/recruitment/discovery/scan.ts';

/** Starts the weekly scan of a brand, unless the day has one. */
export default task({
  payload: z.object({ organization_id: z.string(), run_id: z.string(), id: z.string(), week: z.string() }),
  run: ({ tx, payload: { id, week } }) => startWeeklyScan(tx, id, week),
});
