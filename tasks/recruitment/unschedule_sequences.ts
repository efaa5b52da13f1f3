import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { lockCampaign } from '../../src/recruitment/campaigns/campaign.ts';
import { requestSchedule, unscheduleSome } from '../../src/recruitment/campaigns/reschedule.ts';

/** Takes the times of the sequences of a campaign that was changed that the request has left; then they get new ones. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), campaign_id: z.string() }),
  most: most_at_once,
  async run({ tx, payload: { campaign_id } }) {
    const { state } = await lockCampaign(tx, campaign_id);
    const count = await unscheduleSome(tx, campaign_id);
    if (count < most_at_once && state === 'sending') requestSchedule(tx, campaign_id);
    return count;
  },
});
