import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { Lanes } from './queues.ts';
import { freeFromDead } from './wake.ts';

/** What sending adds to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const lanes = new Lanes(context);
  return {
    parts: [lanes],
    chores: [],
    freeFromDead: (worker_ids) => freeFromDead(context.store.database, worker_ids),
    idle: () => lanes.idle(),
    close: async () => {},
  };
}
