import { counted } from './attempt_count.ts';
import { cancelled, type QueuedDelivery, resultOf } from './delivery.ts';
import { type EndpointQueues, type Lease, most_deliveries, type RunWrite } from './endpoint_queue.ts';
import type { Sender } from './send.ts';

/** While others wait for a slot, a run ends after this many deliveries, or when this time has passed. */
export const run_ms = 1_000;
const most_in_run = most_deliveries;
/** A run is no longer than this, so that its copy of the endpoint is no older: a rotated secret's overlap ends. */
const longest_ms = 60_000;
/** A run whose lease was not renewed for so long begins no further request: the lease might run out under it. */
const too_old_ms = 15_000;
/** An attempt that took longer makes its endpoint a slow one, whose runs have slots of their own. */
const slow_ms = 1_000;
/** The time for which a run with an empty queue waits for more, unless it must make room: later events then need no run of their own. */
const linger_ms = 30;
/** The number of deliveries that may be sent and not yet written: a worker that dies causes as many to be sent again. */
const most_unwritten = most_deliveries * 4;
/** After so many it looks at what is written by now. */
const most_unseen = most_unwritten / 4;

export interface RunOptions {
  queues: EndpointQueues;
  sender: Pick<Sender, 'send'>;
  /** Others wait for a slot: do not stay. */
  isCrowded: () => boolean;
  stopping: AbortSignal;
  /** Waits until more was appended to the endpoint's queue, for so long at most. @returns whether there may be more */
  hears(within_ms: number): Promise<boolean>;
  /** Returns whether it looks for waiting deliveries once it has ended: called when it ends. Else it has left, and somebody else must be woken. */
  looks(): boolean;
}

/** The end of a run. */
export interface Ended {
  looked: boolean;
  /** The run that follows it: it looked, and something waits. */
  next: Lease | undefined;
}

/**
 * A run at an endpoint: sends what its queue holds, "one request at a time", until nothing is left or it must make room. The results of the
 * attempts are written while it goes on, together with what other runs write.
 */
export class Run {
  readonly #lease: Lease;
  readonly #options: RunOptions;
  readonly #started = performance.now();
  #renewed: number;
  #done = 0;
  #written: Promise<void> = Promise.resolve();
  #next: Lease | undefined;
  #isOver = false;
  #failure: unknown;

  constructor(lease: Lease, options: RunOptions) {
    this.#lease = lease;
    this.#options = options;
    this.#renewed = lease.asked_at;
  }

  /** @throws when Postgres fails: what was not written is sent again when the lease has run out */
  async run(): Promise<Ended> {
    const unwritten: Promise<void>[] = [];
    for await (const { delivery, next } of this.#deliveries()) {
      if (this.#mustEnd() || !(await this.#deliver(delivery, next))) break;
      if (this.#done % most_unseen !== 0) continue;
      unwritten.push(this.#written);
      if (unwritten.length === most_unwritten / most_unseen) await unwritten.shift();
    }
    const looked = this.#options.looks();
    this.#write({ ended: looked ? 'looks' : 'leaves' });
    await this.#written;
    if (this.#failure) throw this.#failure;
    return { looked, next: this.#next };
  }

  /** Each with the one after it, as far as it is known. The next ones are read while the ones before are sent. */
  async *#deliveries(): AsyncGenerator<{ delivery: QueuedDelivery; next: QueuedDelivery | undefined }> {
    for (let read = this.#lease.deliveries; read.length > 0; ) {
      const { queue_position } = read.at(-1) as QueuedDelivery;
      const isAll = read.length < most_deliveries;
      const following = isAll ? undefined : this.#following(queue_position);
      following?.catch(() => {});
      for (const [nth, delivery] of read.entries()) yield { delivery, next: read[nth + 1] };
      read = (await following) ?? (await this.#linger(queue_position));
    }
  }

  /** Waits a moment for further deliveries, while there is room. */
  async #linger(queue_position: number): Promise<QueuedDelivery[]> {
    while (!this.#options.isCrowded() && !this.#mustEnd() && (await this.#options.hears(linger_ms))) {
      const read = await this.#following(queue_position);
      if (read.length > 0) return read;
    }
    return [];
  }

  async #following(queue_position: number): Promise<QueuedDelivery[]> {
    const read = await this.#options.queues.following(this.#lease, queue_position);
    this.#isOver ||= read === undefined;
    return read ?? [];
  }

  #mustEnd(): boolean {
    const now = performance.now();
    if (this.#options.stopping.aborted || this.#isOver || this.#failure) return true;
    if (now - this.#renewed > too_old_ms || now - this.#started > longest_ms) return true;
    return this.#done > 0 && this.#options.isCrowded() && (this.#done >= most_in_run || now - this.#started > run_ms);
  }

  /** @returns false when the attempt was cut off */
  async #deliver(delivery: QueuedDelivery, next: QueuedDelivery | undefined): Promise<boolean> {
    this.#done++;
    if (delivery.cancelled) {
      this.#write({ result: cancelled(delivery) });
      return true;
    }
    const outcome = await this.#options.sender.send(delivery, next);
    if (!outcome) return false;
    const { failure, ...answered } = outcome;
    const result = counted(delivery, resultOf(delivery, answered), failure);
    this.#write({ result, slow: outcome.duration_ms > slow_ms });
    return true;
  }

  /** Reports are written in their order: when the last one is, all are. */
  #write(write: Omit<RunWrite, 'lease'>): void {
    const written_at = performance.now();
    this.#written = this.#options.queues.write({ lease: this.#lease, ...write }).then(
      ({ goes_on, next }) => {
        this.#renewed = written_at;
        this.#isOver ||= !goes_on;
        this.#next = next;
      },
      (error) => {
        this.#failure = error;
      },
    );
  }
}
