import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { campaignsDue } from '../../src/recruitment/campaigns/sweep.ts';

/** Finds the campaigns that are to start or finish, and those with sequences to schedule; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { is_start, ...campaign } of await campaignsDue(tx, tick)) {
      tx.enqueue(is_start ? 'recruitment/start_campaign' : 'recruitment/finish_campaign', { ...campaign, run_id });
    }
  },
});
