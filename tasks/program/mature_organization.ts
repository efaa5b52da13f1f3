import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { matureCommissions } from '../../src/program/commissions/maturity.ts';

const most = 500;

/** Makes one organization's mature commissions due. */
export default batchTask({
  payload: scheduled.extend({ organization_id: z.string() }),
  most,
  run: ({ tx, payload: { tick } }) => matureCommissions(tx, tick, most),
});
