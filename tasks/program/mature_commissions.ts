import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { organizationsWithMature } from '../../src/program/commissions/commission.ts';

/** Finds the organizations whose commissions have matured by the tick; each has its own job. */
export default task({
  payload: scheduled,
  async run({ run_id, tick }, { store }) {
    await transaction(store, { organization_id: null, request_id: run_id }, async (tx) => {
      for (const { organization_id } of await organizationsWithMature(tx, tick)) {
        tx.enqueue('program/mature_organization', { organization_id, run_id, tick });
      }
    });
  },
});
