import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { products } from '../../src/products.ts';

/** Makes the weeks to come, and drops the log of those that ended more than 30 days ago. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { tick } }) {
    for (const { id_prefix, delivery_prefix } of products.map(({ events }) => events)) {
      await tx.all(sql`call webhooks.keep_partitions(${tick}::timestamptz, ${id_prefix}, ${delivery_prefix})`);
    }
  },
});
