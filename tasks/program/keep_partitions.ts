import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';

/** Makes the weeks to come of the clicks. Fails where somebody reads them for long, to be run again. */
export default task({
  payload: scheduled,
  run: ({ tx, payload: { tick } }) =>
    tx.all(
      sql`call core.ensure_weekly_partitions('program.click', 'clk', least(${tick}::timestamptz, now()), least(${tick}::timestamptz, now()) + interval '5 weeks')`,
    ),
});
