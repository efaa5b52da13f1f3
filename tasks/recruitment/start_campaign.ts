import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { startScheduled } from '../../src/recruitment/campaigns/launch.ts';

/** Starts a campaign at its time. */
export default task({
  payload: z.object({ organization_id: z.string(), run_id: z.string(), campaign_id: z.string() }),
  run: ({ tx, payload: { campaign_id }, services }) => startScheduled(tx, campaign_id, services),
});
