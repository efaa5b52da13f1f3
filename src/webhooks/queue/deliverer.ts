import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Lane, type Lanes, openLanes } from './lane.ts';
import { receiverOf, type SendContext, Sender } from './send.ts';
import { Turn, turn_ms } from './turn.ts';

/** Turns that outlast a second let go of their slots: so many at a time. */
const most_stray = 500;

export type DelivererOptions = SendContext &
  Pick<WorkerContext, 'store' | 'services' | 'log' | 'worker_id' | 'stopping'> & {
    /** Turns at a time, besides those that stray and those of slow endpoints. */
    slots: number;
  };

/** Delivers for a worker: its turns share statements, and know of each other when slots become few. */
export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #lanes: Lanes;
  readonly #running = new Set<Promise<void>>();
  #on = 0;
  #stray = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#lanes = openLanes(options.store.database, options.worker_id);
  }

  /**
   * A turn at an endpoint. One that outlasts a second goes on without its slot, so that endpoints which hang all of a sudden leave the
   * others theirs. What was sent and not written when a worker dies is sent again: "at least once".
   * @throws when the endpoint's secret cannot be opened. The lease then runs out by itself, and only after it comes the next try: no
   * attempt is counted for a fault of ours, and nothing is lost.
   */
  async takeTurn(endpoint_id: string): Promise<void> {
    this.#on++;
    const turn = this.#begin(endpoint_id, () => this.#on >= this.#options.slots);
    const outlasts = Promise.withResolvers<boolean>();
    const timer = setTimeout(outlasts.resolve, turn_ms, true);
    try {
      if ((await Promise.race([turn, outlasts.promise])) === true && this.#stray < most_stray) this.#letGo(turn);
      else await turn;
    } finally {
      clearTimeout(timer);
      this.#on--;
    }
  }

  /**
   * Takes turns at as many of these endpoints as there are slots to spare, at once and without jobs: what was just fanned out here need not
   * go through the queue to be sent. A worker that dies over it leaves them to the sweep.
   * @returns the others
   */
  take(endpoint_ids: string[]): string[] {
    const room = this.#options.stopping.aborted ? 0 : Math.max(0, Math.floor(this.#options.slots / 2) - this.#on);
    for (const endpoint_id of endpoint_ids.slice(0, room)) {
      this.takeTurn(endpoint_id).catch((error) => this.#logFailure(error));
    }
    return endpoint_ids.slice(room);
  }

  /** A turn at an endpoint whose last attempt took long: it keeps its slot, of which there are few, and does not stay. */
  takeSlowTurn(endpoint_id: string): Promise<void> {
    return this.#begin(endpoint_id, () => true);
  }

  /** Settles when no turn is on any more, be it without its slot. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  #begin(endpoint_id: string, isCrowded: () => boolean): Promise<void> {
    const turn = this.#turns(endpoint_id, isCrowded).finally(() => this.#running.delete(turn));
    this.#running.add(turn);
    return turn;
  }

  #letGo(turn: Promise<void>): void {
    this.#stray++;
    turn.catch((error) => this.#logFailure(error)).finally(() => this.#stray--);
  }

  #logFailure(error: unknown): void {
    this.#options.log.warn({ err: error }, 'a turn failed; it is repeated when its lease has run out');
  }

  /**
   * Looks again after each turn, since whoever gave places meanwhile left the waking to it. A turn that lost its lease finds the lane taken.
   */
  async #turns(endpoint_id: string, isCrowded: () => boolean): Promise<void> {
    while (!this.#options.stopping.aborted) {
      const lane = await this.#lanes.begin(endpoint_id);
      if (!lane) return;
      await this.#turn(lane, isCrowded);
      if (isCrowded()) break;
    }
    await this.#lanes.wake(endpoint_id);
  }

  #turn(lane: Lane, isCrowded: () => boolean): Promise<void> {
    const { services, stopping } = this.#options;
    const sender = new Sender(receiverOf(lane, services), this.#options);
    return new Turn(lane, { lanes: this.#lanes, sender, isCrowded, stopping }).run();
  }
}
