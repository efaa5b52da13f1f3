/**
 * A run of a queue goes through the six steps, one email after the other, until the inbox has to wait.
 *
 * - A slot that is less than 1.5 s away is waited for with the connection open. A run ends after 30 s, for others.
 * - Steps of queues of one organization that come together share a transaction; where it fails, each is done by itself.
 */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { counter } from '../../core/metrics/registry.ts';
import { batched } from '../../core/postgres/batch.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import { disconnectInbox } from '../campaigns/inbox_connection.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { type Claim, type Claimed, claim } from './claim.ts';
import { confirm, type Held } from './confirm.ts';
import { type Attempt, connectTo, handOver, NotConnected } from './hand_over.ts';
import { composed } from './letter.ts';
import { lookBack, readAgainSince } from './look_back.ts';
import { lookUp } from './look_up.ts';
import { type Ended, recordEnds } from './record_sent.ts';
import { recordUnsent, type Unsent, unsentBy } from './record_unsent.ts';

const emails = counter(
  'rail_outreach_emails_total',
  {
    help: 'Attempts to send an email, by outcome: accepted; answered (refused, temporarily or permanently); held (stopped before the email was handed over); lost (the connection broke before that); unknown (it broke after that); auth; unreachable; unusable.',
    row: 'Outreach',
    title: 'Attempts to send an email',
  },
  ['outcome'],
);
const rests = counter(
  'rail_outreach_rests_total',
  {
    help: 'Times that an inbox had to wait: for its gap, its limit, the plan, or because nothing was due.',
    row: 'Outreach',
    title: 'Inboxes that had to wait',
  },
  ['reason'],
);

/** Queues that share a transaction. */
const most_shared = 50;
/** A queue whose next slot is nearer than that keeps its connection and waits. */
const linger_ms = 1_500;
/** A run gives its slot to another queue after this time. */
const run_ms = 30_000;

export class Sender {
  readonly #context: WorkerContext;
  readonly #organizations = new Map<string, Shared>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /** Sends what is due from an inbox until it has to wait. `looks_again` is set by a job that comes meanwhile. */
  async sendDue(queue: InboxKey, run: { looks_again: boolean }): Promise<void> {
    const shared = this.#sharedBy(queue.organization_id);
    const line = new Line(queue, this.#context);
    const begun = performance.now();
    try {
      while (!this.#context.stopping.aborted) {
        run.looks_again = false;
        const next = await shared.claim(queue.inbox_id);
        const is_over = next.is === 'busy' || next.is === 'rest';
        if (is_over && run.looks_again) continue;
        if (next.is === 'busy') return;
        if (next.is === 'rest') {
          rests.inc({ reason: next.reason });
          if (next.until !== null && next.reason === 'gap') await wakeQueue(this.#context.store, queue, next.until);
          return;
        }
        if (next.is === 'look_back') {
          if (!(await lookBack(this.#context, queue, next.since))) return;
          continue;
        }
        if (next.is === 'look_up') await lookUp(this.#context, queue, next.message_id);
        else await this.#send(queue, next.message, { shared, line });
        if (next.is === 'send' && !run.looks_again && !isSoon(next.message.next_slot_at))
          return await wakeQueue(this.#context.store, queue, next.message.next_slot_at);
        if (performance.now() - begun > run_ms) break;
      }
      await wakeQueue(this.#context.store, queue);
    } finally {
      line.close();
    }
  }

  async #send(queue: InboxKey, message: Claimed, { shared, line }: { shared: Shared; line: Line }): Promise<void> {
    const { message_id, attempts } = message;
    const attempt = await this.#attempt(message, { shared, line });
    emails.inc({ outcome: attempt.is });
    if (attempt.is === 'held') return;
    if (attempt.is === 'accepted') await shared.end({ message_id, as: 'sent', other_id: attempt.other_id });
    else if (attempt.is === 'unknown') await lookUp(this.#context, queue, message_id);
    else await this.#recordUnsent(queue, { message_id, attempts }, this.#unsentOf(attempt));
    if (message.before?.sent_at) await readAgainSince(this.#context, queue, message.before.sent_at);
  }

  async #attempt(message: Claimed, { shared, line }: { shared: Shared; line: Line }): Promise<Attempt | Unusable> {
    const { message_id, attempts, before } = message;
    if (before) return before.message_id === null ? { is: 'unknown' } : { is: 'accepted', other_id: null };
    const letter = await composed(message).catch(unusable);
    if ('is' in letter) return letter;
    try {
      const connection = await line.open();
      return await handOver(connection, letter, () => shared.confirm({ message_id, attempts }), this.#context.cut_off);
    } catch (error) {
      if (error instanceof NotConnected) return { is: error.is };
      throw error;
    }
  }

  /** A connection that this worker dropped, because it stops, says nothing of the email. */
  #unsentOf(attempt: Exclude<Attempt, { is: 'accepted' | 'unknown' | 'held' }> | Unusable): Unsent {
    if (attempt.is === 'answered') return unsentBy(attempt.answer);
    return attempt.is === 'lost' && this.#context.cut_off.aborted ? { is: 'unreachable' } : attempt;
  }

  async #recordUnsent(queue: InboxKey, held: Held, unsent: Unsent): Promise<void> {
    const { store, services } = this.#context;
    const opening = { organization_id: queue.organization_id, request_id: null };
    const reason = await transaction(store, opening, (tx) => recordUnsent(tx, services.vault, held, unsent));
    if (reason) await transaction(store, opening, (tx) => disconnectInbox(tx, { id: queue.inbox_id }, reason));
  }

  #sharedBy(organization_id: string): Shared {
    const known = this.#organizations.get(organization_id) ?? share(organization_id, this.#context);
    this.#organizations.set(organization_id, known);
    return known;
  }
}

type Unusable = { is: 'auth' | 'unreachable' } | { is: 'unusable'; reason: 'recipient_refused' | 'too_large' };

/** Says what cannot be composed, and is not tried again: an address that cannot stand in a header, or HTML that is too long. */
function unusable(error: unknown): Unusable & { is: 'unusable' } {
  if (error instanceof TypeError) return { is: 'unusable', reason: 'recipient_refused' };
  if (error instanceof RangeError) return { is: 'unusable', reason: 'too_large' };
  throw error;
}

/** Enqueues the job of a queue: there is one for each. @param at its next slot; at once if not given */
const wakeQueue = (store: Store, { organization_id, inbox_id }: InboxKey, at?: string): Promise<void> =>
  transaction(store, { organization_id, request_id: null }, async (tx) =>
    tx.enqueue(
      'recruitment/send_from_inbox',
      { organization_id, inbox_id },
      { job_key: `outreach:${inbox_id}`, ...(at === undefined ? {} : { run_at: at }) },
    ),
  );

const isSoon = (slot: string): boolean => new Date(slot).getTime() - databaseTime() < linger_ms;

/** The steps of queues of an organization that come together: each of many emails is one transaction. */
interface Shared {
  claim(inbox_id: string): Promise<Claim>;
  confirm(held: Held): Promise<boolean>;
  end(ended: Ended): Promise<void>;
}

function share(organization_id: string, { store, services, worker_id }: WorkerContext): Shared {
  const opening = { organization_id, request_id: null };
  const { vault, base_url } = services;
  const within = <T>(work: (tx: Tx) => Promise<T>) => transaction(store, opening, work);
  return {
    claim: together((inbox_ids: string[]) =>
      within((tx) => claim(tx, inbox_ids, { worker_id, vault, base_url, random: Math.random })),
    ),
    confirm: together(async (held: Held[]) => {
      const confirmed = await within((tx) => confirm(tx, held, worker_id));
      return held.map(({ message_id }) => confirmed.has(message_id));
    }),
    end: together(async (ends: Ended[]) => {
      await within((tx) => recordEnds(tx, ends));
      return ends.map(() => undefined);
    }),
  };
}

/** Batches calls. What fails together is done again one by one, so that nobody fails for another's fault. */
function together<Item, Result>(work: (items: Item[]) => Promise<Result[]>): (item: Item) => Promise<Result> {
  type Settled = { value: Result } | { error: unknown };
  const settle = async (items: Item[]): Promise<Settled[]> => {
    try {
      return (await work(items)).map((value) => ({ value }));
    } catch (error) {
      if (items.length === 1) return [{ error }];
      const settled: Settled[] = [];
      for (const item of items) settled.push(...(await settle([item])));
      return settled;
    }
  };
  const one = batched(settle, { most: most_shared });
  return async (item) => {
    const settled = await one(item);
    if ('error' in settled) throw settled.error;
    return settled.value;
  };
}

/** The connection of a queue's run, opened at the first need. */
class Line {
  readonly #queue: InboxKey;
  readonly #context: WorkerContext;
  #connection: SMTPConnection | undefined;

  constructor(queue: InboxKey, context: WorkerContext) {
    this.#queue = queue;
    this.#context = context;
  }

  /** @throws NotConnected */
  async open(): Promise<SMTPConnection> {
    if (!this.#connection || isClosed(this.#connection)) {
      this.#connection = await connectTo(this.#queue, this.#context);
    }
    return this.#connection;
  }

  close(): void {
    if (this.#connection && !isClosed(this.#connection)) this.#connection.quit();
  }
}

const isClosed = (connection: SMTPConnection): boolean => (connection as unknown as { _destroyed: boolean })._destroyed;
