import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { inBatches, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { run } from '../../src/core/postgres/database.ts';

const most = 1_000;

/**
 * The delivery sweep: retries that are due are enqueued at the end of their endpoints' queues. Endpoints are woken after the commit: a run
 * that ends before it cannot see what was enqueued.
 */
export default taskOutsideTransaction({
  payload: scheduled,
  run: ({ payload: { tick }, store }) =>
    inBatches(most, async () => {
      const [row] = await run<{ enqueued: number; endpoint_ids: string[] | null }>(
        store.database,
        sql`select enqueued, endpoint_ids from webhooks.enqueue_due_retries(${tick}::timestamptz, ${most})`,
      );
      if (row?.endpoint_ids) await run(store.database, sql`select webhooks.wake_endpoints(${row.endpoint_ids})`);
      return row?.enqueued ?? 0;
    }),
});
