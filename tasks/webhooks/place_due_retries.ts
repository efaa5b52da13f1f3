import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { run } from '../../src/core/postgres/database.ts';

const batch = 1_000;

/** The delivery sweep: retries that are due go to the end of their endpoints' sequences. */
export default task({
  payload: scheduled,
  async run({ tick }, { store }) {
    for (;;) {
      const [row] = await run<{ placed: number; endpoint_ids: string[] | null }>(
        store.database,
        sql`select placed, endpoint_ids from webhooks.place_due_retries(${tick}::timestamptz, ${batch})`,
      );
      if (row?.endpoint_ids) await run(store.database, sql`select webhooks.wake_lanes(${row.endpoint_ids})`);
      if ((row?.placed ?? 0) < batch) return;
    }
  },
});
