import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { organizationsToComplete } from '../../src/recruitment/campaigns/sweep.ts';
import { wakeMailboxes, wakeQueues } from '../../src/recruitment/sending/queues.ts';

/** Each minute: wakes the inboxes that have something to send, and ends the sequences that nobody replied to. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    await wakeQueues(tx);
    await wakeMailboxes(tx);
    for (const { organization_id } of await organizationsToComplete(tx, tick)) {
      tx.enqueue(
        'recruitment/complete_sequences',
        { organization_id, run_id, tick },
        { job_key: `complete_sequences:${organization_id}` },
      );
    }
  },
});
