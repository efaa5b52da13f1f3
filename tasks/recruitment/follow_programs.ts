import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { programsToFollow } from '../../src/recruitment/deals/find_joining.ts';

/** Finds the programs that invited prospects may have joined; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick } }) {
    for (const program of await programsToFollow(tx)) {
      tx.enqueue(
        'recruitment/observe_joining',
        { ...program, run_id, tick },
        { job_key: `joining:${program.program_id}` },
      );
    }
  },
});
