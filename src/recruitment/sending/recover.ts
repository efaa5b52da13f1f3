/** Step 6 of an email: what a worker claimed and did not send is freed once the worker is dead or gone, and sent later, or not at all. */
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { giveBack, type Queue } from './limits.ts';

/**
 * Workers that stopped without an outcome are not found dead: they are gone. They are counted, because of a row that another worker has claimed
 * meanwhile Postgres does not evaluate `not exists` again.
 */
export const freeFromGone = (tx: Tx): Promise<object[]> =>
  tx.all(sql`
    update recruitment.message m set claimed_by = null
    where m.state = 'sending' and m.claimed_by is not null and (select count(*) from core.worker w where w.id = m.claimed_by) = 0`);

/** Frees what dead workers held, for another one at once. */
export async function freeFromDead(database: Database, worker_ids: string[]): Promise<void> {
  await run(
    database,
    sql`
      with freed as (
        update recruitment.message m set claimed_by = null
        where m.state = 'sending' and m.claimed_by = any(${worker_ids})
        returning m.organization_id, m.inbox_id
      ), job as (
        select json_build_object(
          'identifier', 'recruitment/send_from_inbox',
          'payload', json_build_object('organization_id', f.organization_id, 'inbox_id', f.inbox_id),
          'job_key', 'outreach:' || f.inbox_id
        ) as job
        from freed f
      )
      select core.enqueue(coalesce(json_agg(j.job), '[]'::json))::text from job j`,
  );
}

/** The way on for the last email of a queue, which has no outcome yet. */
export type Recovered =
  /** It may have been sent by a worker that died: to be looked for. */
  | { is: 'look_up'; message_id: string }
  /** Another worker sends it. */
  | { is: 'busy' };

/**
 * Takes over what dead workers were sending: "phase claimed is safe to send again (same row, same Message-ID)". It is planned again, and checked
 * again when its turn comes; one whose inbox was deleted meanwhile is cancelled. What may have been sent is to be looked for.
 * @returns what is done in each queue whose last email has no outcome, by the id of its inbox
 */
export async function recover(tx: Tx, queues: Queue[], worker_id: string): Promise<Map<string, Recovered>> {
  const recovered = new Map<string, Recovered>();
  const unsent: Queue[] = [];
  for (const queue of queues) {
    const last = lastOf(queue, worker_id);
    if (last === 'unsent') unsent.push(queue);
    else if (last) recovered.set(queue.id, last);
  }
  await claimDoubtful(tx, recovered, worker_id);
  await cancel(tx, sendingOf(unsent.filter(({ is_deleted }) => is_deleted)));
  const again = unsent.filter(({ is_deleted }) => !is_deleted);
  await planAgain(tx, sendingOf(again));
  for (const queue of again) if (queue.sending?.sequence_id === null) queue.planned ??= queue.sending.id;
  return recovered;
}

/** Undefined: the last email of the queue has an outcome. */
function lastOf({ sending }: Queue, worker_id: string): Recovered | 'unsent' | undefined {
  if (!sending) return undefined;
  const is_orphan = sending.claimed_by === null || sending.claimed_by === worker_id;
  if (!is_orphan) return { is: 'busy' };
  return sending.phase === 'data' ? { is: 'look_up', message_id: sending.id } : 'unsent';
}

const sendingOf = (queues: Queue[]): string[] => queues.flatMap(({ sending }) => (sending ? [sending.id] : []));

async function claimDoubtful(tx: Tx, recovered: Map<string, Recovered>, worker_id: string): Promise<void> {
  const doubtful = [...recovered.values()].flatMap((one) => (one.is === 'look_up' ? [one.message_id] : []));
  if (doubtful.length === 0) return;
  await tx.all(
    sql`update recruitment.message t set claimed_by = ${worker_id} where ${tenant(tx)} and t.id = any(${doubtful})`,
  );
}

/** The time for retries begins with the first attempt that came to an answer, or to a connection that was lost: others do not count. */
const attempted = sql`first_attempt_at = case when t.server_answer is not null then t.first_attempt_at end`;

/** Plans messages again that were claimed and not sent. Those of sequences that have ended meanwhile are cancelled. */
export async function planAgain(tx: Tx, message_ids: string[]): Promise<void> {
  if (message_ids.length === 0) return;
  await giveBack(tx, message_ids);
  await tx.all(sql`
    update recruitment.message t
    set
      state = case when t.sequence_id is null or exists (
        select from recruitment.sequence s where s.organization_id = t.organization_id and s.id = t.sequence_id and s.open
      ) then 'planned' else 'cancelled' end,
      ${attempted}, phase = null, claimed_by = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${message_ids})`);
}

/** Cancels messages that were claimed and not sent, and are not sent any more. */
export async function cancel(tx: Tx, message_ids: string[]): Promise<void> {
  if (message_ids.length === 0) return;
  await giveBack(tx, message_ids);
  await tx.all(sql`
    update recruitment.message t set state = 'cancelled', ${attempted}, phase = null, claimed_by = null, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${message_ids})`);
}
