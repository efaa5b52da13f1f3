import { purgeExpired } from '../../src/core/jobs/purge.ts';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';

const most = 2_000;

/** Deletes what the core has kept for long enough: replies to idempotency keys, scheduled runs, mail. */
export default batchTask({
  payload: scheduled,
  most,
  run: ({ tx, payload: { tick } }) => purgeExpired(tx, tick, most),
});
