import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { connectionsToReconcile } from '../../src/program/processors/overdue.ts';

/** Has the inbox of each connection compared with the events of its processor. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { tick } }) {
    for (const connection of await connectionsToReconcile(tx))
      tx.enqueue('program/reconcile_processor', { ...connection, tick }, { job_key: `reconcile:${connection.id}` });
  },
});
