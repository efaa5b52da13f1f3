import { foldTask } from '../../src/core/jobs/fold_task.ts';
import { foldTallies } from '../../src/program/programs/tally.ts';

/** Folds what was written since the last run into the tallies. */
export default foldTask('program/fold_tallies', foldTallies);
