/** Visits pages for a worker: over its own connections, one request a second to a host over all workers, which is a row of `recruitment.host_pacing`. */

import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'sql-template-tag';
import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Services } from '../../core/resource/services.ts';
import type { Pacing } from '../pages/pacing.ts';
import type { Visit } from '../pages/visit.ts';
import type { Visitor } from '../pages/visitor.ts';
import { freeClaims } from './claim.ts';
import { PageReader } from './page_reader.ts';

/** The means by which a worker visits pages: its connections, the robots.txt files that it has read, and the thread that reads pages. Opened with the first visit. */
export class Visits {
  readonly reader: PageReader;
  readonly #database: Database;
  readonly #services: Services;
  #visitor: Promise<Visitor> | undefined;

  constructor(
    { store, services, log }: Pick<WorkerContext, 'store' | 'services' | 'log'>,
    reader = new PageReader(log),
  ) {
    this.#database = store.database;
    this.#services = services;
    this.reader = reader;
  }

  /** Never throws: whatever goes wrong is the outcome. */
  async visit(url: string, signal: AbortSignal): Promise<Visit> {
    const [{ visit }, visitor] = await Promise.all([import('../pages/visit.ts'), this.visitor()]);
    return visit(url, visitor, signal);
  }

  visitor(): Promise<Visitor> {
    this.#visitor ??= this.#open();
    return this.#visitor;
  }

  async #open(): Promise<Visitor> {
    // To load what reads pages keeps the process busy: it must not be done while pages are on their way, whose time would run out.
    const { createVisitor } = await import('../pages/visitor.ts');
    const { allow_private_addresses: allowPrivate, own_hosts: ownHosts, name_servers: nameServers } = this.#services;
    const { base_url, visit_interval_ms, trusted_addresses: trustedAddresses, patience_ms } = this.#services;
    const timeouts = patience_ms && { timeout_ms: patience_ms.visit };
    const visitor = createVisitor({ allowPrivate, ownHosts, nameServers, trustedAddresses, base_url, ...timeouts });
    return { ...visitor, pacing: sharedPacing(this.#database, visit_interval_ms) };
  }

  async close(): Promise<void> {
    this.reader.close();
    await (await this.#visitor)?.close();
  }
}

const forgotten_after_s = 3_600;

/** One request a second to a host, by whichever worker: the next time of each host is a row of the database. */
const sharedPacing = (database: Database, interval_ms: number): Pacing => ({
  async wait(host, delay_ms = 0, signal) {
    const wait_ms = await reserve(database, host, Math.max(interval_ms, delay_ms));
    if (wait_ms > 0) await sleep(wait_ms, undefined, { signal });
  },
  hold(host, ms) {
    // Politeness that could not be written down is not worth failing a visit for.
    holdHost(database, host, ms).catch(() => {});
  },
});

/** Reserves the next request to a host. @returns the milliseconds until then */
async function reserve(database: Database, host: string, interval_ms: number): Promise<number> {
  const interval = sql`make_interval(secs => ${interval_ms / 1_000}::double precision)`;
  const [row] = await run<{ wait_ms: number }>(
    database,
    sql`
      with reserved as (
        insert into recruitment.host_pacing as t (host, next_at)
        values (${host}, clock_timestamp() + ${interval})
        on conflict (host) do update set next_at = greatest(t.next_at, clock_timestamp()) + ${interval}
        returning t.next_at
      )
      select (extract(epoch from reserved.next_at - ${interval} - clock_timestamp()) * 1000)::double precision as wait_ms from reserved`,
  );
  return row?.wait_ms ?? 0;
}

const holdHost = (database: Database, host: string, ms: number): Promise<object[]> =>
  run(
    database,
    sql`
      insert into recruitment.host_pacing as t (host, next_at)
      values (${host}, clock_timestamp() + make_interval(secs => ${ms / 1_000}::double precision))
      on conflict (host) do update set next_at = greatest(t.next_at, excluded.next_at)`,
  );

/** The time of the next request to a host, in ISO 8601, where that is further away than `ms`. */
export async function busyUntil(database: Database, host: string, ms: number): Promise<string | undefined> {
  const [row] = await run<{ next_at: string }>(
    database,
    sql`
      select t.next_at
      from recruitment.host_pacing t
      where t.host = ${host} and t.next_at > clock_timestamp() + make_interval(secs => ${ms / 1_000}::double precision)`,
  );
  return row?.next_at;
}

const forgetHosts = (database: Database): Promise<object[]> =>
  run(
    database,
    sql`delete from recruitment.host_pacing t where t.next_at < now() - make_interval(secs => ${forgotten_after_s})`,
  );

const forget_every_ms = 600_000;

/** The part that discovery adds to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const { database } = context.store;
  const visits = new Visits(context);
  return {
    parts: [visits],
    chores: [{ every_ms: forget_every_ms, run: async () => void (await forgetHosts(database)) }],
    freeFromDead: (worker_ids) => freeClaims(database, worker_ids),
    idle: async () => {},
    close: () => visits.close(),
  };
}
