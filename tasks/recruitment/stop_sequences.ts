import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { endSequencesOf } from '../../src/recruitment/campaigns/end.ts';

/** Ends the sequences of a campaign that was stopped that the request has left. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), campaign_id: z.string() }),
  most: most_at_once,
  run: ({ tx, payload: { campaign_id } }) => endSequencesOf(tx, campaign_id),
});
