import type { Agent } from 'undici';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { logFailure } from '../../core/postgres/outage.ts';
import { type EndpointQueues, type Lease, openQueues } from './endpoint_queue.ts';
import { type Ended, Run, run_ms } from './run.ts';
import { receiverOf, Sender } from './send.ts';

/** Runs that outlast a second give up their slots: so many at a time. */
const most_detached = 500;

export type DelivererOptions = Pick<
  WorkerContext,
  'store' | 'services' | 'log' | 'worker_id' | 'stopping' | 'cut_off'
> & {
  agent(): Promise<Agent>;
  /** Runs at a time, besides those that are detached and those of slow endpoints. */
  slots: number;
};

/** Delivers for a worker: its runs share statements, and know of each other when slots become few. */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #queues: EndpointQueues;
  readonly #running = new Set<Promise<void>>();
  readonly #sending = new Map<string, Sending>();
  #in_slots = 0;
  #detached = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#queues = openQueues(options.store.database, options.worker_id);
  }

  /**
   * Sends what waits for an endpoint. A run that outlasts a second goes on without its slot, so that endpoints which hang all of a sudden
   * leave the others theirs. What was sent and not written when a worker dies is sent again: "at least once".
   * @throws when the endpoint's secret cannot be opened. The lease then runs out by itself, and only after it comes the next try: no
   * attempt is counted for a fault of ours, and nothing is lost.
   */
  deliver(endpoint_id: string): Promise<void> {
    return this.#deliver(endpoint_id);
  }

  async #deliver(endpoint_id: string, lease?: Lease): Promise<void> {
    this.#in_slots++;
    const running = this.#start(endpoint_id, () => this.#in_slots >= this.#options.slots, lease);
    const outlasts = Promise.withResolvers<boolean>();
    const timer = setTimeout(outlasts.resolve, run_ms, true);
    try {
      const isLong = (await Promise.race([running, outlasts.promise])) === true;
      if (isLong && this.#detached < most_detached) this.#detach(running);
      else await running;
    } finally {
      clearTimeout(timer);
      this.#in_slots--;
    }
  }

  /** The number of further endpoints that it may deliver to at once and without jobs. */
  get spare(): number {
    return this.#options.stopping.aborted ? 0 : Math.max(0, Math.floor(this.#options.slots / 2) - this.#in_slots);
  }

  /** Delivers to an endpoint that was leased for it. */
  deliverLeased(lease: Lease): void {
    this.#deliver(lease.endpoint_id, lease).catch((error) => this.#logFailure(error));
  }

  /**
   * Delivers to as many of these endpoints as there are slots to spare, at once and without jobs: what was just fanned out here need not
   * go through the job queue to be sent. Where it sends already, it looks once more before it ends. A worker that dies meanwhile leaves them
   * to the sweep.
   * @returns the others
   */
  deliverNow(endpoint_ids: string[]): string[] {
    const others = endpoint_ids.filter((endpoint_id) => !this.#lookAgain(endpoint_id));
    const count = this.spare;
    for (const endpoint_id of others.slice(0, count)) {
      this.deliver(endpoint_id).catch((error) => this.#logFailure(error));
    }
    return others.slice(count);
  }

  /** Another worker may have appended to the queues of endpoints that runs here wait for: these end, and look. */
  lookAtAll(): void {
    for (const { hear } of this.#sending.values()) hear?.();
  }

  /** Sends what waits for an endpoint whose last attempt took long: it keeps its slot, of which there are few, and does not stay. */
  deliverSlow(endpoint_id: string): Promise<void> {
    return this.#start(endpoint_id, () => true);
  }

  /** Resolves when nothing runs any more, detached or not. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #start(endpoint_id: string, isCrowded: () => boolean, lease?: Lease): Promise<void> {
    const running = this.#runs(endpoint_id, isCrowded, lease).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  #detach(running: Promise<void>): void {
    this.#detached++;
    running.catch((error) => this.#logFailure(error)).finally(() => this.#detached--);
  }

  #logFailure(error: unknown): void {
    logFailure(this.#options.log, error, 'a run of deliveries failed; it is repeated when its lease has run out');
  }

  /** @returns whether it sends to the endpoint, and has not looked yet for what waits after that */
  #lookAgain(endpoint_id: string): boolean {
    const sending = this.#sending.get(endpoint_id);
    if (!sending) return false;
    sending.looks_again = true;
    sending.hear?.();
    return true;
  }

  /**
   * Looks again after each run, since whoever enqueued meanwhile left the waking to it. A run that lost its lease finds it taken.
   * @param first the lease of its first run, where it was taken already
   */
  async #runs(endpoint_id: string, isCrowded: () => boolean, first?: Lease): Promise<void> {
    const sending: Sending = { looks_again: false };
    this.#sending.set(endpoint_id, sending);
    try {
      let looked = first !== undefined || !this.#options.stopping.aborted;
      for (let lease = first ?? (looked ? await this.#look(endpoint_id, sending) : undefined); lease; ) {
        const ended = await this.#run(lease, isCrowded, sending);
        looked = ended.looked;
        lease = ended.next ?? (looked && sending.looks_again ? await this.#look(endpoint_id, sending) : undefined);
      }
      if (looked) return;
    } finally {
      if (this.#sending.get(endpoint_id) === sending) this.#sending.delete(endpoint_id);
    }
    await this.#queues.wake(endpoint_id);
  }

  /** Takes the lease, where something waits: events that it was woken for meanwhile may have come just after. */
  async #look(endpoint_id: string, sending: Sending): Promise<Lease | undefined> {
    let lease: Lease | undefined;
    do {
      sending.looks_again = false;
      lease = await this.#queues.begin(endpoint_id);
    } while (!lease && sending.looks_again);
    return lease;
  }

  async #run(lease: Lease, isCrowded: () => boolean, sending: Sending): Promise<Ended> {
    const { services, stopping, cut_off } = this.#options;
    const agent = await this.#options.agent();
    const sender = new Sender(receiverOf(lease, services), { cut_off, agent });
    const looks = () => {
      sending.looks_again = false;
      // A caller that waits for its end need not wait for others that share the write.
      sending.hear = () => this.#queues.hurry();
      return !isCrowded() && !stopping.aborted;
    };
    const hears = (within_ms: number) => heard(sending, within_ms);
    const run = new Run(lease, { queues: this.#queues, sender, isCrowded, stopping, hears, looks }).run();
    return run.finally(() => {
      sending.hear = undefined;
    });
  }
}

/** The run of an endpoint in this process. */
interface Sending {
  /** More was appended to its queue: it looks once more before it ends. */
  looks_again: boolean;
  /** Wakes the run that waits for more. */
  hear?: (() => void) | undefined;
}

/** Returns whether more was appended, now or within a while. */
async function heard(sending: Sending, within_ms: number): Promise<boolean> {
  if (!sending.looks_again) {
    const woken = Promise.withResolvers<void>();
    const timer = setTimeout(woken.resolve, within_ms);
    sending.hear = woken.resolve;
    await woken.promise;
    clearTimeout(timer);
    sending.hear = undefined;
  }
  const { looks_again } = sending;
  sending.looks_again = false;
  return looks_again;
}
