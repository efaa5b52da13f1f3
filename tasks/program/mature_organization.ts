import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { matureAll } from '../../src/program/commissions/maturity.ts';

/** Makes one organization's mature commissions due. */
export default taskOutsideTransaction({
  payload: scheduled.extend({ organization_id: z.string() }),
  run: ({ store, payload: { organization_id, run_id, tick } }) =>
    matureAll(tick, (work) => transaction(store, { organization_id, request_id: run_id }, work)),
});
