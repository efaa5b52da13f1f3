/** Finds the work of the scheduled tasks. Kept apart from doing it, so that a worker that finds none does not load that code. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { not_eligible_reasons } from '../eligibility.ts';

/** The condition that the batch of a payout, called `t`, can be sent. */
export const of_ready_batch = sql`exists (
  select
  from program.payout_batch b
  where b.organization_id = t.organization_id and b.id = t.batch_id and b.stage = 'ready' and b.deleted_at is null
)`;

/** Held for what only the partner can change. */
export const of_partner = sql`t.held_reason = any(${[...not_eligible_reasons]})`;

/**
 * Pending payouts, called `t`, of batches that can be sent, that are due at a time and whose `payout.due` was not emitted. Those that were found to be not
 * eligible just now are passed over.
 */
export const due_not_emitted = (at: string) => sql`
  t.status = 'pending' and t.due_emitted_at is null and t.deleted_at is null and t.attempt = 0 and t.due_at <= ${at}::timestamptz
    and not (t.held_until is not null and t.held_until > ${at}::timestamptz and ${of_partner}) and ${of_ready_batch}`;

/** Organizations with payouts that have become due. Reads across tenants: for the scheduled task alone. */
export const organizationsWithDue = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`select distinct t.organization_id from program.payout t where ${due_not_emitted(at)}`);

/** Payouts, called `t`, that are due, by Postgres' clock too, and were not found to be unable to be sent just now. */
export const due_by = (at: string): Sql =>
  sql`t.due_at <= least(${at}::timestamptz, now()) and (t.held_until is null or t.held_until <= ${at}::timestamptz) and ${of_ready_batch}`;

/** Programs that send automatically, and have payouts that are due. Reads across tenants: for the scheduled task alone. */
export const programsWithDue = (tx: Tx, at: string): Promise<{ organization_id: string; id: string }[]> =>
  tx.all(sql`
    select distinct t.organization_id, t.program_id as id
    from program.payout t
    join program.program g on g.organization_id = t.organization_id and g.id = t.program_id and g.auto_payouts_enabled
    where t.status = 'pending' and t.in_progress is null and t.deleted_at is null and ${due_by(at)}
      and not (select h.is_held from core.hold() h)`);

/** Payouts that a rail is to be asked about, the longest due first. Reads across tenants: for the scheduled task alone. */
export const payoutsToPoll = (tx: Tx, at: string, most: number): Promise<{ organization_id: string; id: string }[]> =>
  tx.all(sql`
    select due.organization_id, due.payout_id as id
    from (
      select t.organization_id, t.payout_id, t.next_poll_at
      from program.payout_attempt t
      where t.next_poll_at <= ${at}::timestamptz
      order by t.next_poll_at
      limit ${most}
    ) as due
    group by due.organization_id, due.payout_id`);
