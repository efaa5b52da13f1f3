import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { completeSequences, most_completed } from '../../src/recruitment/campaigns/sweep.ts';

/** Ends the sequences of an organization whose last email nobody replied to in time. */
export default batchTask({
  payload: scheduled.extend({ organization_id: z.string() }),
  most: most_completed,
  run: ({ tx, payload: { tick } }) => completeSequences(tx, tick),
});
