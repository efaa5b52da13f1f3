import { counted } from './attempt_count.ts';
import { cancel, type Place, settle } from './delivery.ts';
import { type Lane, type Lanes, most_places, type Report } from './lane.ts';
import type { Sender } from './send.ts';

/** While others wait for a slot, a turn ends after this many places, or when this time has passed. */
export const turn_ms = 1_000;
const most_in_turn = most_places;
/** What a turn knows of its endpoint is no older: a rotated secret's overlap ends. */
const longest_ms = 60_000;
/** A turn whose lease was not renewed for so long begins no further request: the lease might run out under it. */
const too_old_ms = 15_000;
/** An attempt that took longer makes its endpoint a slow one, whose turns run on slots of their own. */
const slow_ms = 1_000;
/** What may be sent and not yet written: a worker that dies lets as much be sent again. */
const most_unwritten = most_places * 4;
/** After so many it looks at what is written by now. */
const most_unseen = most_unwritten / 4;

export interface TurnOptions {
  lanes: Lanes;
  sender: Pick<Sender, 'send'>;
  /** Others wait for a slot: do not stay. */
  isCrowded: () => boolean;
  stopping: AbortSignal;
}

/**
 * A turn at an endpoint: sends what stands in its lane, "one request at a time", until nothing does or it must make room. What came of
 * the attempts is written behind its back, together with what other turns write.
 */
export class Turn {
  readonly #lane: Lane;
  readonly #options: TurnOptions;
  readonly #started = performance.now();
  #renewed: number;
  #passed = 0;
  #written: Promise<void> = Promise.resolve();
  #isOver = false;
  #failure: unknown;

  constructor(lane: Lane, options: TurnOptions) {
    this.#lane = lane;
    this.#options = options;
    this.#renewed = lane.asked_at;
  }

  /** @throws when Postgres fails: what was not written is sent again when the lease has run out */
  async run(): Promise<void> {
    const unwritten: Promise<void>[] = [];
    for await (const { place, next } of this.#places()) {
      if (this.#mustEnd() || !(await this.#pass(place, next))) break;
      if (this.#passed % most_unseen !== 0) continue;
      unwritten.push(this.#written);
      if (unwritten.length === most_unwritten / most_unseen) await unwritten.shift();
    }
    this.#report({ ended: true });
    await this.#written;
    if (this.#failure) throw this.#failure;
  }

  /** Each with the one behind it, as far as it is known. The next places are read while the ones before are sent. */
  async *#places(): AsyncGenerator<{ place: Place; next: Place | undefined }> {
    const { endpoint_id } = this.#lane;
    for (let places = this.#lane.places; places.length > 0; ) {
      const last = places.at(-1) as Place;
      const following = places.length < most_places ? [] : this.#options.lanes.following(endpoint_id, last.place);
      Promise.resolve(following).catch(() => {});
      for (const [nth, place] of places.entries()) yield { place, next: places[nth + 1] };
      places = await following;
    }
  }

  #mustEnd(): boolean {
    const now = performance.now();
    if (this.#options.stopping.aborted || this.#isOver || this.#failure) return true;
    if (now - this.#renewed > too_old_ms || now - this.#started > longest_ms) return true;
    return (
      this.#passed > 0 && this.#options.isCrowded() && (this.#passed >= most_in_turn || now - this.#started > turn_ms)
    );
  }

  /** @returns false when the attempt was cut off */
  async #pass(place: Place, next: Place | undefined): Promise<boolean> {
    this.#passed++;
    if (place.cancelled) {
      this.#report({ settled: cancel(place) });
      return true;
    }
    const outcome = await this.#options.sender.send(place, next);
    if (outcome) this.#report({ settled: counted(place, settle(place, outcome)), slow: outcome.duration_ms > slow_ms });
    return outcome !== undefined;
  }

  /** Reports are written in their order: when the last one is, all are. */
  #report(report: Omit<Report, 'lane'>): void {
    const reported = performance.now();
    this.#written = this.#options.lanes.report({ lane: this.#lane, ...report }).then(
      (goes_on) => {
        this.#renewed = reported;
        this.#isOver ||= !goes_on;
      },
      (error) => {
        this.#failure = error;
      },
    );
  }
}
