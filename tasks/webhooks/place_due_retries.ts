import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { inBatches, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { run } from '../../src/core/postgres/database.ts';

const most = 1_000;

/**
 * The delivery sweep: retries that are due go to the end of their endpoints' sequences. Lanes are woken after the commit: a turn that ends
 * before it cannot see what was placed.
 */
export default taskOutsideTransaction({
  payload: scheduled,
  run: ({ payload: { tick }, store }) =>
    inBatches(most, async () => {
      const [row] = await run<{ placed: number; endpoint_ids: string[] | null }>(
        store.database,
        sql`select placed, endpoint_ids from webhooks.place_due_retries(${tick}::timestamptz, ${most})`,
      );
      if (row?.endpoint_ids) await run(store.database, sql`select webhooks.wake_lanes(${row.endpoint_ids})`);
      return row?.placed ?? 0;
    }),
});
