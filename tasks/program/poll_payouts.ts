import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { payoutsToPoll } from '../../src/program/payouts/sending/find_due.ts';

/** The number of payouts that a tick asks about: the rest waits for the next. */
const most = 5000;

/** Finds the payouts that rails are to be asked about by the tick; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const { organization_id, id } of await payoutsToPoll(tx, tick, most)) {
      tx.enqueue('program/poll_payout', { organization_id, request_id: run_id, id }, { job_key: `poll:${id}` });
    }
  },
});
