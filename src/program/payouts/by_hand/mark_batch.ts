/** Marking the payouts of a batch as paid: some in each transaction of a worker. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { TaskContext } from '../../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { type Payout, payouts } from '../payout.ts';
import { payoutBatches } from '../payout_batch.ts';
import { most_commissions } from '../payout_commissions.ts';
import { methods_by_hand } from '../payout_state.ts';
import { markPaid } from './change.ts';

/** The payouts of a batch to mark, and the way in which they were paid. */
export const Marking = z.object({
  statuses: z.array(z.enum(['pending', 'processing', 'failed'])),
  file: z.number().nullable(),
  external_id: z.string().nullable(),
  paid_at: z.string(),
  requested_at: z.string(),
});
export type Marking = z.infer<typeof Marking>;

/** The number of payouts that a transaction marks, with `most_commissions` in all. */
const most = 500;

/**
 * The payouts, called `t`, of a batch that a marking is of, as each by itself could be marked. None of a payment that failed or was begun after
 * the request: whoever made it did not know of it.
 */
export const markable = (batch_id: string, { statuses, file, requested_at }: Marking): Sql => sql`
  t.batch_id = ${batch_id} and ${payouts.alive} and t.in_progress is null and t.status = any(${statuses})
    and (t.status <> 'processing' or t.method = any(${[...methods_by_hand]}))
    and coalesce(t.submitted_at, t.created_at) < ${requested_at}::timestamptz
    and (t.status <> 'failed' or t.livemode and t.updated_at < ${requested_at}::timestamptz and not exists (
      select from program.payout_attempt a
      where a.organization_id = t.organization_id and a.payout_id = t.id and a.status in ('prepared', 'in_doubt', 'processing')))
    and (${file}::integer is null or exists (
      select from program.payout_attempt a join program.payout_file f on f.organization_id = a.organization_id and f.id = a.file_id
      where a.organization_id = t.organization_id and a.payout_id = t.id and a.number = t.attempt and f.number = ${file}))`;

/** Goes through all of them. It may be run again: what is paid is passed over. A worker that must stop leaves the rest to a job. */
export async function markBatch(
  { organization_id, request_id, id }: { organization_id: string; request_id: string | null; id: string },
  marking: Marking,
  { store, stopping }: TaskContext,
): Promise<void> {
  const opening = { organization_id, request_id };
  for (let done = most; done > 0; ) {
    done = await transaction(store, opening, async (tx) => {
      if (!stopping.aborted) return markSome(tx, id, marking);
      tx.enqueue('program/mark_payout_batch', { ...opening, id, marking });
      return 0;
    });
  }
}

/** @returns how many were marked */
async function markSome(tx: Tx, batch_id: string, marking: Marking): Promise<number> {
  const is_ready = sql`${tenant(tx)} and t.id = ${batch_id} and t.stage = 'ready'`;
  if (!(await payoutBatches.find(tx, is_ready, sql`for share of t`))) return 0;
  const next = await tx.all<Payout>(sql`
    select ${payouts.columns} from ${payouts.from} where ${tenant(tx)} and ${markable(batch_id, marking)}
    order by t.id limit ${most} for no key update of t`);
  const now = fitting(next);
  await markPaid(tx, now, marking);
  return now.length;
}

/** The first of them that are settled in one go: those of a rail in test mode, and of many commissions, each by itself. */
function fitting(next: Payout[]): Payout[] {
  let commissions = 0;
  const beyond = next.findIndex(({ commission_count, livemode }, at) => {
    commissions += commission_count;
    return at > 0 && (!livemode || commissions > most_commissions);
  });
  const [first] = next;
  if (first && !first.livemode) return [first];
  return beyond === -1 ? next : next.slice(0, beyond);
}
