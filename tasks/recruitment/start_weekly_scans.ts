import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { brandsDue } from '../../src/recruitment/discovery/brands_due.ts';

/** Finds the brands whose weekly scan falls on this day; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { organization_id, id, week } of await brandsDue(tx, tick)) {
      tx.enqueue('recruitment/start_weekly_scan', { organization_id, run_id, id, week });
    }
  },
});
