import { purgeExpired } from '../../src/core/jobs/retention.ts';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { default_retention } from '../../src/core/resource/services.ts';

const most = 2_000;

/** Deletes what the core has kept for long enough: replies to idempotency keys, scheduled runs, mail, the audit log. */
export default batchTask({
  payload: scheduled,
  most,
  run: ({ tx, payload: { tick }, services }) => purgeExpired(tx, services.retention ?? default_retention, tick, most),
});
