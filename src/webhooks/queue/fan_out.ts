import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { batched } from '../../core/postgres/batch.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { logFailure } from '../../core/postgres/outage.ts';
import { fannedOut } from './metrics.ts';

/** What the jobs that fan out are left out for, while it is watched (see core.enqueue). */
export const watch_name = 'webhooks/fan_out';

const batch = 1_000;
/** Two runs that found events so shortly after each other begin the watch; so long without any ends it. */
const busy_ms = 20;
const idle_ms = 100;
/** While it finds events; each time a little later while it finds none. */
const look_every_ms = 4;
const most_pause_ms = 20;
/** Of the watch; renewed after half of it. */
const span_ms = 200;

export interface FanOutOptions {
  database: Database;
  worker_id: string;
  stopping: AbortSignal;
  log: Logger;
  /** Delivers to some of these endpoints here and now. Gives the others, for which jobs are enqueued. */
  deliverNow(endpoint_ids: string[]): string[];
}

/** Appends deliveries of events to the endpoints' queues. While there are many, it looks for them by itself, without jobs. */
export class FanOut {
  readonly #options: FanOutOptions;
  #found_at = Number.NEGATIVE_INFINITY;
  #watching: Promise<void> | undefined;

  constructor(options: FanOutOptions) {
    this.#options = options;
  }

  /** Fans out every event that was committed before the call. Calls that come while one is on share the next. */
  readonly run: () => Promise<void> = () => this.#shared(undefined);

  readonly #shared = batched<undefined, void>(
    async (calls) => {
      const before = this.#found_at;
      await this.#fanOutAll();
      if (this.#found_at > before && this.#found_at - before < busy_ms) this.#watching ??= this.#watch();
      return calls.map(() => undefined);
    },
    { most: Number.POSITIVE_INFINITY },
  );

  /** Resolves when nothing is watched any more. */
  async idle(): Promise<void> {
    await this.#watching;
  }

  async #watch(): Promise<void> {
    try {
      for (let until = 0; !this.#options.stopping.aborted; await sleep(this.#pauseMs())) {
        const now = performance.now();
        const idle = now - this.#found_at > idle_ms;
        let is_refused = false;
        if (!idle && now > until - span_ms / 2) {
          is_refused = !(await this.#keepWatch());
          until = performance.now() + span_ms;
        }
        await this.#fanOutAll();
        // Whoever relied on the watch was seen by a look after its end. Another one begins after it.
        if (is_refused || (idle && now > until)) break;
      }
    } catch (error) {
      logFailure(this.#options.log, error, 'the watch for events broke off; jobs and the sweep go on');
    } finally {
      this.#watching = undefined;
    }
  }

  #pauseMs(): number {
    return Math.min(Math.max((performance.now() - this.#found_at) / 4, look_every_ms), most_pause_ms);
  }

  async #keepWatch(): Promise<boolean> {
    const { database, worker_id } = this.#options;
    const [row] = await run<{ kept: boolean }>(
      database,
      sql`select core.keep_watch(${watch_name}, ${worker_id}, make_interval(secs => ${span_ms / 1_000})) as kept`,
    );
    return row?.kept === true;
  }

  async #fanOutAll(): Promise<void> {
    const { database } = this.#options;
    for (;;) {
      const [row] = await run<{ taken: number; endpoint_ids: string[] | null; slow_endpoint_ids: string[] | null }>(
        database,
        sql`select taken, endpoint_ids, slow_endpoint_ids from webhooks.fan_out(${batch})`,
      );
      const { taken = 0, endpoint_ids, slow_endpoint_ids } = row ?? {};
      if (taken > 0) {
        this.#found_at = performance.now();
        fannedOut(taken);
      }
      const left = [...this.#options.deliverNow(endpoint_ids ?? []), ...(slow_endpoint_ids ?? [])];
      if (left.length > 0) await run(database, sql`select webhooks.wake_endpoints(${left})`);
      if (taken < batch) return;
    }
  }
}
