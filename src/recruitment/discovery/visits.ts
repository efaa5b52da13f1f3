import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import type { Database } from '../../core/postgres/database.ts';
import type { Services } from '../../core/resource/services.ts';
import type { Visit } from '../pages/visit.ts';
import type { Visitor } from '../pages/visitor.ts';
import { sharedPacing } from './host_turn.ts';
import { PageReader } from './page_reader.ts';

/** What a worker visits pages with: its connections, the robots.txt files that it has read, and the thread that reads pages. Opened with the first visit. */
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
