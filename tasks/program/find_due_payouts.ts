import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { organizationsWithDue } from '../../src/program/payouts/sending/find_due.ts';

/** Finds the organizations whose payouts have become due by the tick; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { organization_id } of await organizationsWithDue(tx, tick)) {
      tx.enqueue('program/emit_due_payouts', { organization_id, run_id, tick });
    }
  },
});
