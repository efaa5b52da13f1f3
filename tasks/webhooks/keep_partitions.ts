import sql from 'sql-template-tag';
import { run } from '../../src/core/database.ts';
import { scheduled } from '../../src/core/schedule.ts';
import { task } from '../../src/core/task.ts';

/** Makes the weeks to come, and drops the log of those that ended more than 30 days ago. */
export default task({
  payload: scheduled,
  async run({ tick }, { store }) {
    await run(store.database, sql`call webhooks.keep_partitions(${tick}::timestamptz)`);
  },
});
