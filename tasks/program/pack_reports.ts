import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { packReports } from '../../src/program/reports/sums/fold.ts';

const most = 1;

/** Packs the sums of reports that have changed since the last run. */
export default batchTask({
  payload: scheduled,
  most,
  run: ({ tx }) => packReports(tx, most),
});
