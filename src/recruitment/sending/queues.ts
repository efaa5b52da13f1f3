/** The queues of a worker: each is an inbox that sends one email at a time. */
import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { once } from '../../core/values/once.ts';
import type { InboxKey } from '../inboxes/inbox.ts';

export class Queues {
  readonly #context: WorkerContext;
  /** Loaded by the first run. */
  readonly #sender = once(async () => new (await import('./run.ts')).Sender(this.#context));
  /** The runs of queues: a job that comes for one that runs has it look again. */
  readonly #runs = new Map<string, { ended: Promise<void>; looks_again: boolean }>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /**
   * Sends what is due from an inbox, one email after the other, until it has to wait. Two runs of a queue would each take what the other has
   * claimed for what a dead worker left.
   */
  run(queue: InboxKey): Promise<void> {
    const key = `${queue.organization_id} ${queue.inbox_id}`;
    const known = this.#runs.get(key);
    if (known) {
      known.looks_again = true;
      return Promise.resolve();
    }
    const run = { ended: Promise.resolve(), looks_again: false };
    this.#runs.set(key, run);
    run.ended = this.#run(queue, run, () => this.#runs.delete(key));
    return run.ended;
  }

  /** Resolves when nothing is being sent any more. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.allSettled([...this.#runs.values()].map(({ ended }) => ended));
  }

  /** Runs again for jobs that came meanwhile: one that comes once it is over has a run of its own. */
  async #run(queue: InboxKey, run: { looks_again: boolean }, over: () => void): Promise<void> {
    try {
      const sender = await this.#sender();
      do await sender.sendDue(queue, run);
      while (run.looks_again && !this.#context.stopping.aborted);
    } finally {
      over();
    }
  }
}

/** The part that sending adds to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const queues = new Queues(context);
  return {
    parts: [queues],
    chores: [],
    freeFromDead: async (worker_ids) => {
      const { freeFromDead } = await import('./recover.ts');
      await freeFromDead(context.store.database, worker_ids);
    },
    idle: () => queues.idle(),
    close: async () => {},
  };
}
