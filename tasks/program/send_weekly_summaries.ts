import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { sendWeeklySummaries } from '../../src/program/reports/summary/weekly_summary.ts';

/** Mails the summary of the week before the tick; what was mailed is not mailed again. */
export default taskOutsideTransaction({
  payload: scheduled,
  async run({ store, payload }) {
    await sendWeeklySummaries(store, payload);
  },
});
