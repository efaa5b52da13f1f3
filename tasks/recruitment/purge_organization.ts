import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { purge } from '../../src/recruitment/purge.ts';

const most = 200;

/** Erases what one organization keeps for too long. */
export default batchTask({
  payload: scheduled.extend({ organization_id: z.string() }),
  most,
  run: ({ tx, payload: { tick }, services }) => purge(tx, services, tick, most),
});
