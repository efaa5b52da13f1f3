import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { scheduleSequences } from '../../src/recruitment/campaigns/schedule_sequences.ts';

/** Schedules the sequences of a campaign that are not yet. */
export default taskOutsideTransaction({
  payload: z.object({ organization_id: z.string(), campaign_id: z.string() }),
  run: ({ payload, ...context }) => scheduleSequences(payload, context),
});
