import { foldTask } from '../../src/core/jobs/fold_task.ts';
import { foldProspectTallies } from '../../src/recruitment/brands/tally.ts';

/** Folds what was written since the last run into the tallies of prospects. */
export default foldTask('recruitment/fold_tallies', foldProspectTallies);
