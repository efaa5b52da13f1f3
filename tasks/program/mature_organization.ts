import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { matureCommissions } from '../../src/program/commissions/commission.ts';

const batch = 500;

/** Makes one organization's mature commissions due, a batch a transaction. */
export default task({
  payload: scheduled.extend({ organization_id: z.string() }),
  async run({ organization_id, run_id, tick }, { store }) {
    const opening = { organization_id, request_id: run_id };
    while ((await transaction(store, opening, (tx) => matureCommissions(tx, tick, batch))) === batch);
  },
});
