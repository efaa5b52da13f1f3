import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { giveUpChanges } from '../../src/program/payouts/by_hand/give_up.ts';

/** The number of payouts that a tick frees: the rest waits for the next. */
const most = 1_000;

/** Lets payouts be changed again whose change a job has failed to make for good. */
export default task({
  payload: scheduled,
  async run({ tx, log }) {
    for (const given_up of await giveUpChanges(tx, most))
      log.error(given_up, 'a change of a payout was given up: its job failed for good, and says why');
  },
});
