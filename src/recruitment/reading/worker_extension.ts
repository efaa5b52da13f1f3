import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { Watches } from './watches.ts';

const claim_every_ms = 1_000;
const note_every_ms = 15_000;

/** What reading adds to a worker: the IMAP connections of its share of the inboxes. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const watches = new Watches(context);
  return {
    parts: [watches],
    chores: [
      { every_ms: claim_every_ms, run: () => watches.claim() },
      { every_ms: note_every_ms, run: () => watches.noteSeen() },
    ],
    // A reader that is gone holds nothing: see claim_inboxes.
    freeFromDead: async () => {},
    idle: () => watches.idle(),
    close: () => watches.close(),
  };
}
