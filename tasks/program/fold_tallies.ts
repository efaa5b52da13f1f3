import { scheduled } from '../../src/core/schedule.ts';
import { task } from '../../src/core/task.ts';
import { transaction } from '../../src/core/transaction.ts';
import { foldTallies } from '../../src/program/tally.ts';

const batch = 10_000;

/** Folds what was written since the last tick into the tallies, a batch a transaction. */
export default task({
  payload: scheduled,
  async run({ run_id }, { store }) {
    const opening = { organization_id: null, request_id: run_id };
    while ((await transaction(store, opening, (tx) => foldTallies(tx, batch))) === batch);
  },
});
