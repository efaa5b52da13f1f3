import sql from 'sql-template-tag';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { run } from '../../src/core/postgres/database.ts';

/** "Replays the first response for 24 hours": older ones are no longer read, and go. */
export default task({
  payload: scheduled,
  async run({ tick }, { store }) {
    await run(
      store.database,
      sql`delete from core.idempotency_key where created_at < ${tick}::timestamptz - interval '24 hours'`,
    );
    await run(
      store.database,
      sql`delete from core.scheduled_run where created_at < ${tick}::timestamptz - interval '90 days'`,
    );
    await run(
      store.database,
      sql`delete from core.outgoing_mail where created_at < ${tick}::timestamptz - interval '90 days'`,
    );
  },
});
