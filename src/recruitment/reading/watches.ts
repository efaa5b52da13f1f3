/**
 * The inboxes that this worker reads: its share of those that are connected, claimed every second (`recruitment.inbox_reader`), over one connection each. What a
 * dead worker read is taken over once it is reaped; workers that come later get their share. An inbox that is connected again, or gets another login, is read
 * within a second.
 */
import sql from 'sql-template-tag';
import { limitConcurrency } from '../../core/jobs/concurrency.ts';
import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { run } from '../../core/postgres/database.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { openClassifier } from './classifier.ts';
import type { Sharing } from './connection.ts';
import { connectionsAre } from './metrics.ts';

const most_connecting = 20;
const most_reading = 6;

interface Claimed extends InboxKey {
  /** Another one than before: the connection is opened anew. */
  login: string;
}

interface Watch extends Claimed {
  is_open: boolean;
  stop: AbortController;
  ended: Promise<void>;
}

class Watches {
  readonly #context: WorkerContext;
  readonly #watches = new Map<string, Watch>();
  readonly #limitConnecting = limitConcurrency(most_connecting);
  readonly #limitReading = limitConcurrency(most_reading);
  readonly #classifier = openClassifier();
  readonly #seen = new Map<string, InboxKey>();

  constructor(context: WorkerContext) {
    this.#context = context;
    context.stopping.addEventListener('abort', () => this.#stopAll(), { once: true });
  }

  /** Claims the inboxes that nobody reads, as far as they are this worker's share, and lets go of those that are not any more. */
  async claim(): Promise<void> {
    const { store, worker_id, stopping } = this.#context;
    if (stopping.aborted) return;
    const watched = [...this.#watches.values()].map(({ inbox_id }) => inbox_id);
    const claimed = await run<Claimed>(
      store.database,
      sql`select c.organization_id, c.inbox_id, c.login from recruitment.claim_inboxes(${worker_id}, ${watched}::text[]) c`,
    );
    const logins = new Map(claimed.map((one) => [keyOf(one), one.login]));
    for (const [key, { login, stop }] of this.#watches) if (logins.get(key) !== login) stop.abort();
    if (stopping.aborted) return;
    for (const one of claimed) if (!this.#watches.has(keyOf(one))) this.#start(one);
    this.#count();
  }

  #start(claimed: Claimed): void {
    const key = keyOf(claimed);
    const stop = new AbortController();
    const watch: Watch = { ...claimed, is_open: false, stop, ended: Promise.resolve() };
    this.#watches.set(key, watch);
    const sharing: Sharing = {
      limitConnecting: this.#limitConnecting,
      limitReading: this.#limitReading,
      classifier: this.#classifier,
      opened: () => {
        watch.is_open = true;
        this.#count();
      },
      seen: (inbox) => void this.#seen.set(key, inbox),
    };
    watch.ended = this.#read(claimed, sharing, stop.signal).finally(() => {
      this.#watches.delete(key);
      this.#count();
    });
  }

  /** A worker that reads no inbox is spared what takes long to load. */
  async #read(inbox: InboxKey, sharing: Sharing, signal: AbortSignal): Promise<void> {
    const { readInbox } = await import('./connection.ts');
    await readInbox(inbox, this.#context, sharing, signal);
  }

  #count(): void {
    const open = [...this.#watches.values()].filter(({ is_open }) => is_open).length;
    connectionsAre(open, this.#watches.size - open);
  }

  /** Writes when inboxes were last read: of all at once, and never waits for a row. */
  async noteSeen(): Promise<void> {
    const seen = [...this.#seen.values()];
    this.#seen.clear();
    if (seen.length === 0) return;
    await run(
      this.#context.store.database,
      sql`
      with seen as (
        select i.organization_id, i.id
        from recruitment.inbox i
        join unnest(${seen.map(({ organization_id }) => organization_id)}::text[], ${seen.map(({ inbox_id }) => inbox_id)}::text[])
          as given (organization_id, id) using (organization_id, id)
        for no key update of i skip locked
      )
      update recruitment.inbox i set imap_last_seen_at = now()
      from seen where i.organization_id = seen.organization_id and i.id = seen.id`,
    );
  }

  #stopAll(): void {
    for (const { stop } of this.#watches.values()) stop.abort();
  }

  /** Settles when nothing is read any more. */
  async idle(): Promise<void> {
    await Promise.all([...this.#watches.values()].map(({ ended }) => ended));
  }

  async close(): Promise<void> {
    this.#stopAll();
    await this.idle();
    this.#classifier.close();
  }
}

const keyOf = ({ organization_id, inbox_id }: InboxKey): string => `${organization_id} ${inbox_id}`;

const claim_every_ms = 1_000;
const note_every_ms = 15_000;

/** The part that reading adds to a worker: the IMAP connections of its share of the inboxes. */
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
