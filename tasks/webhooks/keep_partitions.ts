import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { run } from '../../src/core/postgres/database.ts';
import { products } from '../../src/products.ts';

/** Makes the weeks to come, and drops the log of those that ended more than 30 days ago. */
export default task({
  payload: scheduled,
  async run({ tick }, { store }) {
    for (const { id_prefix, delivery_prefix } of products.map(({ events }) => events)) {
      await run(
        store.database,
        sql`call webhooks.keep_partitions(${tick}::timestamptz, ${id_prefix}, ${delivery_prefix})`,
      );
    }
  },
});
