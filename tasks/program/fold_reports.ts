import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { foldReports } from '../../src/program/reports/fold.ts';

const most = 10_000;
/** So many notes since the last run are a load, under which a minute of notes would be long to add up for each read. */
const load = 1_000;
const under_load_ms = 5_000;

/** Folds what was written since the last run into the sums of reports; under load again in some seconds. */
export default batchTask({
  payload: scheduled,
  most,
  async run({ tx, payload }) {
    const folded = await foldReports(tx, most);
    if (folded >= load) {
      const run_at = new Date(Date.parse(tx.now) + under_load_ms).toISOString();
      tx.enqueue('program/fold_reports', payload, { job_key: 'program/fold_reports', run_at });
    }
    return folded;
  },
});
