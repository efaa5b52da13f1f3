import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import { logFailure } from '../../core/postgres/outage.ts';
import type { Deliverer } from './deliverer.ts';
import { type LeaseRow, lease_s, leasesOf, most_deliveries } from './endpoint_queue.ts';
import { fannedOut } from './metrics.ts';

const batch = 1_000;
/** From the beginning of one to that of the next: what is committed meanwhile shares it. */
const pause_ms = 4;

export interface FanOutOptions {
  database: Database;
  worker_id: string;
  stopping: AbortSignal;
  log: Logger;
  deliverer: Deliverer;
}

/** Appends deliveries of events to the endpoints' queues, as soon as it hears that events were committed. */
export class FanOut {
  readonly #options: FanOutOptions;
  #begun_at = Number.NEGATIVE_INFINITY;
  #is_notified = false;
  #running: Promise<void> | undefined;

  constructor(options: FanOutOptions) {
    this.#options = options;
  }

  /** Fans out every event that was committed before the call: those that are committed shortly after one another, together. */
  readonly hear = (): void => {
    this.#is_notified = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  };

  /** Resolves when nothing is fanned out any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { stopping, log } = this.#options;
    try {
      while (this.#is_notified && !stopping.aborted) {
        const wait_ms = this.#begun_at + pause_ms - performance.now();
        if (wait_ms > 0) await sleep(wait_ms);
        this.#is_notified = false;
        this.#begun_at = performance.now();
        while ((await this.#fanOut()) === batch);
      }
    } catch (error) {
      logFailure(log, error, 'a fan-out failed; the sweep repeats it');
    }
  }

  /** Delivers to those endpoints that were leased with it. The others may have to be woken, now that what waits for them can be seen. */
  async #fanOut(): Promise<number> {
    const { database, worker_id, deliverer } = this.#options;
    const asked_at = performance.now();
    const [summary, ...rows] = await run<Summary & LeaseRow>(
      database,
      sql`select taken, endpoint_ids, slow_endpoint_ids, endpoint_id, token, organization_id, endpoint_version, type, url, https_only, secret,
          previous_secret, queue_position, delivery_id, event_id, event_type, attempt, body, request_id, traceparent, cancelled
        from webhooks.fan_out(${batch}, ${worker_id}, make_interval(secs => ${lease_s}), ${deliverer.spare}, ${most_deliveries})`,
    );
    const { taken = 0, endpoint_ids, slow_endpoint_ids } = summary ?? {};
    if (taken > 0) fannedOut(taken);
    else deliverer.lookAtAll();
    const leases = leasesOf(rows, asked_at);
    for (const lease of leases.values()) deliverer.deliverLeased(lease);
    const others = (endpoint_ids ?? []).filter((endpoint_id) => !leases.has(endpoint_id));
    const left = [...deliverer.deliverNow(others), ...(slow_endpoint_ids ?? [])];
    if (left.length > 0) await run(database, sql`select webhooks.wake_endpoints(${left})`);
    return taken;
  }
}

interface Summary {
  taken: number;
  endpoint_ids: string[] | null;
  slow_endpoint_ids: string[] | null;
}
