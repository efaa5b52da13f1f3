import { foldTask } from '../../src/core/jobs/fold_task.ts';
import { foldReports } from '../../src/program/reports/sums/fold.ts';

/** Folds what was written since the last run into the sums of reports. */
export default foldTask('program/fold_reports', foldReports);
