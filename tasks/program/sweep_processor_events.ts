import { scheduled } from '../../src/core/jobs/schedule.ts';
import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { queueKey } from '../../src/program/processors/backlog.ts';
import { lateQueues, overdueEvents } from '../../src/program/processors/overdue.ts';

/** Has events worked on whose job is gone, and those asked for that others have waited for too long. */
export default taskOutsideTransaction({
  payload: scheduled,
  run: ({ store, payload: { tick } }) =>
    transaction(store, service_opening, async (tx) => {
      for (const late of await lateQueues(tx))
        tx.enqueue('program/work_processor_events', { ...late }, { job_key: queueKey(late.program_id, late.queue) });
      for (const event of await overdueEvents(tx, tick))
        tx.enqueue('program/resolve_processor_event', { ...event }, { job_key: `resolve:${event.id}` });
    }),
});
