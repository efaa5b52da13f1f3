import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { organizationsWithMature } from '../../src/program/commissions/find_mature.ts';

/** Finds the organizations whose commissions have matured by the tick; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { organization_id } of await organizationsWithMature(tx, tick)) {
      tx.enqueue('program/mature_organization', { organization_id, run_id, tick });
    }
  },
});
