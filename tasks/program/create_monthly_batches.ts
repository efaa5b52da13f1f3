import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { startOfMonth } from '../../src/program/payouts/batches/month.ts';
import { programsWithBalances } from '../../src/program/payouts/batches/monthly.ts';

/** Finds the programs that had something to pay at the beginning of the month; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    const month = startOfMonth(tick);
    for (const { organization_id, id } of await programsWithBalances(tx, month)) {
      tx.enqueue('program/create_monthly_batch', { organization_id, run_id, tick: month, id });
    }
  },
});
