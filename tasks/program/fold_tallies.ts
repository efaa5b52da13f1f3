import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { foldTallies } from '../../src/program/programs/tally.ts';

const most = 10_000;
/** So many notes since the last run are a load, under which a minute of notes would be long to add up for each read. */
const load = 1_000;
const under_load_ms = 5_000;

/** Folds what was written since the last run into the tallies; under load again in some seconds. */
export default batchTask({
  payload: scheduled,
  most,
  async run({ tx, payload }) {
    const folded = await foldTallies(tx, most);
    if (folded >= load) {
      const run_at = new Date(Date.parse(tx.now) + under_load_ms).toISOString();
      tx.enqueue('program/fold_tallies', payload, { job_key: 'program/fold_tallies', run_at });
    }
    return folded;
  },
});
