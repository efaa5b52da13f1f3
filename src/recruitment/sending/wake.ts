/** Enqueues the jobs of queues and mailboxes: at the next slot of a queue, and by the sweep of each minute, so that a lost job costs a minute. */
import sql from 'sql-template-tag';
import { holdState } from '../../core/postgres/hold.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { InboxKey } from '../inboxes/inbox.ts';
import { freeFromGone } from './recover.ts';

/** Enqueues the job of a queue: there is one for each. @param at its next slot; at once if not given */
export const wakeQueue = (store: Store, { organization_id, inbox_id }: InboxKey, at?: string): Promise<void> =>
  transaction(store, { organization_id, request_id: null }, async (tx) =>
    tx.enqueue(
      'recruitment/send_from_inbox',
      { organization_id, inbox_id },
      { job_key: `outreach:${inbox_id}`, ...(at === undefined ? {} : { run_at: at }) },
    ),
  );

/** The time that the sweep looks ahead: as far as it is from the next one. */
const ahead = sql`interval '60 seconds'`;

/**
 * The sweep: enqueues the job of each queue that has something to send until the next sweep, and gives up what workers hold that are gone.
 * A queue that rests is left alone, unless a person's email waits in it.
 */
export async function wakeQueues(tx: Tx): Promise<void> {
  if ((await holdState(tx)).is_held) return;
  await tx.all(freeFromGone);
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

/** Servers that keep a copy themselves have done so by then. */
const copy_after_s = 30;
/** A copy that could not be made in a day is not made any more. */
const copy_within_s = 86_400;

/** The condition that the copy of an email, called `t`, is to be looked for, or made. */
export const isToCopy = (
  now: string,
) => sql`t.sent_at between ${now}::timestamptz - make_interval(secs => ${copy_within_s})
  and ${now}::timestamptz - make_interval(secs => ${copy_after_s})`;

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
