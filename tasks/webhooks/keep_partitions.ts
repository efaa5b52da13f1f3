import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { default_retention } from '../../src/core/resource/services.ts';
import { products } from '../../src/products.ts';

/**
 * Makes the weeks to come, and drops the log of those that ended more than 30 days ago. Fails where somebody reads for long, to be run again:
 * requests would wait for as long as it does.
 */
export default taskOutsideTransaction({
  payload: scheduled,
  async run({ store, services, payload: { tick } }) {
    const { event_days } = services.retention ?? default_retention;
    for (const { id_prefix, delivery_prefix } of products.map(({ events }) => events)) {
      await transaction(store, service_opening, (tx) =>
        tx.all(
          sql`call webhooks.keep_partitions(${tick}::timestamptz, ${id_prefix}, ${delivery_prefix}, make_interval(days => ${event_days}))`,
        ),
      );
    }
  },
});
