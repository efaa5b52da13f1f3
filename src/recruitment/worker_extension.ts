import type { WorkerExtension } from '../core/jobs/extension.ts';
import type { WorkerContext } from '../core/jobs/worker_context.ts';
import { extendWorker as extendWithScans } from './discovery/visits.ts';
import { extendWorker as extendWithReading } from './reading/watches.ts';
import { extendWorker as extendWithSending } from './sending/queues.ts';

/** Joins the extensions that the rooms of recruitment add to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const joined = [extendWithScans, extendWithSending, extendWithReading].map((extend) => extend(context));
  return {
    parts: joined.flatMap(({ parts }) => parts),
    chores: joined.flatMap(({ chores }) => chores),
    async freeFromDead(worker_ids) {
      for (const { freeFromDead } of joined) await freeFromDead(worker_ids);
    },
    async idle() {
      await Promise.all(joined.map(({ idle }) => idle()));
    },
    async close() {
      await Promise.all(joined.map(({ close }) => close()));
    },
  };
}
