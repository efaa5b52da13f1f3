import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { programsWithDue } from '../../src/program/payouts/sending/find_due.ts';

/** Finds the programs whose payouts are to be sent automatically by the tick; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { organization_id, id } of await programsWithDue(tx, tick)) {
      tx.enqueue('program/send_due_program', { organization_id, run_id, id, tick }, { job_key: `send due:${id}` });
    }
  },
});
