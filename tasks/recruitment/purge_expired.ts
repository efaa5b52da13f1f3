import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { default_retention } from '../../src/core/resource/services.ts';
import { forgetSentBefore, organizationsToPurge } from '../../src/recruitment/retention.ts';

/** Finds the organizations that keep prospects, addresses, imports or results for too long; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick }, services }) {
    await forgetSentBefore(tx);
    for (const { organization_id } of await organizationsToPurge(tx, services.retention ?? default_retention, tick)) {
      tx.enqueue('recruitment/purge_organization', { organization_id, run_id, tick });
    }
  },
});
