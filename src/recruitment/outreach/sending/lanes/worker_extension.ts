import type { WorkerExtension } from '../../../../core/jobs/extension.ts';
import type { WorkerContext } from '../../../../core/jobs/worker_context.ts';
import { Lanes } from './lanes.ts';
import { freeFromDead } from './wake.ts';

/** Jobs that wait for mail servers share slots of their own, so that no other job waits for them. */
const waiting_tasks = ['recruitment/send_from_inbox', 'recruitment/tend_mailbox'];

/** What sending adds to a worker. */
export function extendWorker(context: WorkerContext, concurrency: number): WorkerExtension {
  const lanes = new Lanes(context);
  return {
    parts: [lanes],
    slots: { [waiting_tasks.join(' ')]: concurrency * 5 },
    chores: [],
    freeFromDead: (worker_ids) => freeFromDead(context.store.database, worker_ids),
    idle: () => lanes.idle(),
    close: async () => {},
  };
}
