import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { sweepCampaign } from '../../src/recruitment/campaigns/sweep.ts';

/** Finishes a campaign that is over, or has sequences of it scheduled. */
export default task({
  payload: z.object({ organization_id: z.string(), run_id: z.string(), campaign_id: z.string() }),
  run: ({ tx, payload: { campaign_id } }) => sweepCampaign(tx, campaign_id),
});
