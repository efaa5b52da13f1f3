import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { forgetClicks } from '../../src/program/customers/click_retention.ts';

const most = 2_000;

/** Deletes old clicks of one organization, some at a time: each step has the next one done. */
export default task({
  payload: scheduled.extend({ organization_id: z.string(), before: z.string(), after: z.string() }),
  async run({ tx, payload }) {
    const after = await forgetClicks(tx, payload, most);
    if (after !== null) tx.enqueue('program/purge_clicks_of_organization', { ...payload, after });
  },
});
