import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { createMonthlyBatch } from '../../src/program/payouts/batches/monthly.ts';

/** Creates a program's batch of the month. */
export default task({
  payload: scheduled.extend({ organization_id: z.string(), id: z.string() }),
  run: ({ tx, payload: { id, tick } }) => createMonthlyBatch(tx, id, tick),
});
