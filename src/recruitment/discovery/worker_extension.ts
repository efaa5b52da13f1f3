import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { freeClaims } from './claim.ts';
import { forgetTurns } from './host_turn.ts';
import { Visits } from './visits.ts';

const forget_every_ms = 600_000;

/** What discovery adds to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const { database } = context.store;
  const visits = new Visits(context);
  return {
    parts: [visits],
    chores: [{ every_ms: forget_every_ms, run: async () => void (await forgetTurns(database)) }],
    freeFromDead: (worker_ids) => freeClaims(database, worker_ids),
    idle: async () => {},
    close: () => visits.close(),
  };
}
