import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { foldTallies } from '../../src/program/programs/tally.ts';

const batch = 10_000;
/** So many notes since the last run are a load, under which a minute of notes would be long to add up for each read. */
const load = 1_000;
const under_load_ms = 5_000;

/** Folds what was written since the last run into the tallies, a batch a transaction; under load again in some seconds. */
export default task({
  payload: scheduled,
  async run({ run_id, tick }, { store }) {
    for (let folded = batch; folded === batch; ) {
      folded = await transaction(store, { organization_id: null, request_id: run_id }, async (tx) => {
        const count = await foldTallies(tx, batch);
        if (count >= load) {
          const run_at = new Date(Date.parse(tx.now) + under_load_ms).toISOString();
          tx.enqueue('program/fold_tallies', { run_id, tick }, { job_key: 'program/fold_tallies', run_at });
        }
        return count;
      });
    }
  },
});
