/**
 * The queues: each is an inbox that sends one email at a time. A sweep each minute enqueues the jobs of those that have something to send, and of mailboxes in
 * which something is to be looked for, so that a lost job costs a minute; a worker runs each queue once at a time.
 */
import sql from 'sql-template-tag';
import type { WorkerExtension } from '../../core/jobs/extension.ts';
import type { WorkerContext } from '../../core/jobs/worker_context.ts';
import { holdState } from '../../core/postgres/hold.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { once } from '../../core/values/once.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { isToCopy } from '../sequences/message.ts';

/** The queues of a worker. */
export class Queues {
  readonly #context: WorkerContext;
  /** Loaded by the first run. */
  readonly #sender = once(async () => new (await import('./run.ts')).Sender(this.#context));
  /** The runs of queues: a job that comes for one that runs has it look again. */
  readonly #runs = new Map<string, { ended: Promise<void>; looks_again: boolean }>();

  constructor(context: WorkerContext) {
    this.#context = context;
  }

  /**
   * Sends what is due from an inbox, one email after the other, until it has to wait. Two runs of a queue would each take what the other has
   * claimed for what a dead worker left.
   */
  run(queue: InboxKey): Promise<void> {
    const key = `${queue.organization_id} ${queue.inbox_id}`;
    const known = this.#runs.get(key);
    if (known) {
      known.looks_again = true;
      return Promise.resolve();
    }
    const run = { ended: Promise.resolve(), looks_again: false };
    this.#runs.set(key, run);
    run.ended = this.#run(queue, run, () => this.#runs.delete(key));
    return run.ended;
  }

  /** Resolves when nothing is being sent any more. */
  async idle(): Promise<void> {
    while (this.#runs.size > 0) await Promise.allSettled([...this.#runs.values()].map(({ ended }) => ended));
  }

  /** Runs again for jobs that came meanwhile: one that comes once it is over has a run of its own. */
  async #run(queue: InboxKey, run: { looks_again: boolean }, over: () => void): Promise<void> {
    try {
      const sender = await this.#sender();
      do await sender.sendDue(queue, run);
      while (run.looks_again && !this.#context.stopping.aborted);
    } finally {
      over();
    }
  }
}

/** The part that sending adds to a worker. */
export function extendWorker(context: WorkerContext): WorkerExtension {
  const queues = new Queues(context);
  return {
    parts: [queues],
    chores: [],
    freeFromDead: async (worker_ids) => {
      const { freeFromDead } = await import('./recover.ts');
      await freeFromDead(context.store.database, worker_ids);
    },
    idle: () => queues.idle(),
    close: async () => {},
  };
}

/** The time that the sweep looks ahead: as far as it is from the next one. */
const ahead = sql`interval '60 seconds'`;

/**
 * The sweep: enqueues the job of each queue that has something to send until the next sweep, and gives up what workers hold that are gone.
 * A queue that rests is left alone, unless a person's email waits in it.
 */
export async function wakeQueues(tx: Tx): Promise<void> {
  if ((await holdState(tx)).is_held) return;
  const { freeFromGone } = await import('./recover.ts');
  await freeFromGone(tx);
  const at = sql`${tx.now}::timestamptz`;
  if (new Date(tx.now).getUTCMinutes() % plan_minutes === 0) await tx.all(endRestsForPlan);
  await tx.all(sql`
      with queue as (
        select l.organization_id, l.inbox_id, greatest(l.goes_at, ${at}) as run_at
        from recruitment.outreach_queue l
        where (l.inbox_free_at is null or l.inbox_free_at <= ${at} + ${ahead}) and l.goes_at <= ${at} + ${ahead}
        union all
        select m.organization_id, m.inbox_id, ${at}
        from recruitment.message m
        where (m.state = 'sending' and m.claimed_by is null)
          or (m.state = 'planned' and m.sequence_id is null and (m.due_at is null or m.due_at <= ${at} + ${ahead}))
      ), job as (
        select l.inbox_id, json_build_object(
          'identifier', 'recruitment/send_from_inbox',
          'payload', json_build_object('organization_id', l.organization_id, 'inbox_id', l.inbox_id),
          'job_key', 'outreach:' || l.inbox_id,
          'run_at', min(l.run_at)
        ) as job
        from queue l
        group by l.organization_id, l.inbox_id
      )
      select core.enqueue(coalesce(json_agg(j.job), '[]'::json))::text as enqueued from job j`);
}

/** Emails that were counted by the plan and not sent are given back, in other queues: so often those that rest for it look again. */
const plan_minutes = 15;
const endRestsForPlan = sql`update recruitment.inbox i set rests_until = null, rests_for = null where i.rests_for = 'plan'`;

/**
 * The sweep: enqueues the job of each mailbox that something is to be looked for or put into. The key of a job that runs keeps no other one away,
 * its queue does: two that run beside each other would each put a copy in.
 */
export const wakeMailboxes = (tx: Tx): Promise<object[]> =>
  tx.all(sql`
    with mailbox as (
      select t.organization_id, t.inbox_id from recruitment.message t where t.look_up_at <= ${tx.now}::timestamptz
      union
      select i.organization_id, i.id
      from recruitment.inbox i
      where exists (
        select from recruitment.message t
        where t.organization_id = i.organization_id and t.inbox_id = i.id and t.direction = 'outbound' and t.copied_at is null and ${isToCopy(tx.now)}
      )
    ), job as (
      select json_build_object(
        'identifier', 'recruitment/read_mailbox',
        'payload', json_build_object('organization_id', m.organization_id, 'inbox_id', m.inbox_id),
        'job_key', 'mailbox:' || m.inbox_id,
        'queue_name', 'mailbox:' || m.inbox_id
      ) as job
      from mailbox m
      join recruitment.inbox i on i.organization_id = m.organization_id and i.id = m.inbox_id
      where i.status = 'connected' and i.deleted_at is null
    )
    select core.enqueue(coalesce(json_agg(j.job), '[]'::json))::text from job j`);
