import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { event } from '../../events/event.ts';
import { type Payout, payouts } from '../payout.ts';

/** That the batch of a payout, called `t`, can be sent. */
export const of_ready_batch = sql`exists (
  select
  from program.payout_batch b
  where b.organization_id = t.organization_id and b.id = t.batch_id and b.stage = 'ready' and b.deleted_at is null
)`;

/** Pending payouts, called `t`, of batches that can be sent, that are due at a time and were not told to be. */
const untold = (at: string) => sql`
  t.status = 'pending' and t.due_told_at is null and t.deleted_at is null and t.attempt = 0 and t.due_at <= ${at}::timestamptz
    and ${of_ready_batch}`;

/** Organizations with payouts that have become due. Reads across tenants: for the scheduled task alone. */
export const organizationsWithDue = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`select distinct t.organization_id from program.payout t where ${untold(at)}`);

/** Emits `payout.due` for payouts whose `due_at` has come, once each. @returns how many: fewer than `most` when none is left */
export async function tellDue(tx: Tx, at: string, most: number): Promise<number> {
  const due = await tx.all<Payout>(sql`
    with due as (
      select t.id from program.payout t where ${tenant(tx)} and ${untold(at)} order by t.id limit ${most} for no key update skip locked
    ),
    told as (
      update program.payout t
      set due_told_at = ${tx.now}::timestamptz
      from due
      where ${tenant(tx)} and t.id = due.id
      returning ${payouts.columns}
    )
    select told.* from told order by id`);
  for (const payout of due) tx.emit(event('payout.due', payout));
  return due.length;
}
