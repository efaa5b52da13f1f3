import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { programs } from '../../programs/program.ts';
import { createBatch, dueAt } from './batch.ts';

/**
 * Active programs with something to pay to partners, or to take back from them; none for a month that is more than a day ahead, which only a run by hand can be.
 * Reads across tenants: for the scheduled task alone.
 */
export const programsWithBalances = (tx: Tx, cutoff: string): Promise<{ organization_id: string; id: string }[]> =>
  tx.all(sql`
    select t.organization_id, t.id
    from program.program t
    where t.status = 'active' and ${cutoff}::timestamptz < ${tx.now}::timestamptz + interval '1 day' and exists (
      select
      from program.commission c
      join program.partner p on p.organization_id = c.organization_id and p.id = c.partner_id and p.deleted_at is null
      where c.organization_id = t.organization_id and c.program_id = t.id and c.status in ('pending', 'approved', 'due')
        and c.payout_id is null and c.deleted_at is null and (c.mature_at < ${cutoff}::timestamptz or c.kind = 'clawback')
    )
    order by t.organization_id, t.id`);

/** "A scheduled run makes a batch per active program with cut-off = the start of that month", once. */
export async function createMonthlyBatch(tx: Tx, program_id: string, month: string): Promise<void> {
  const program = await programs.find(
    tx,
    sql`${tenant(tx)} and t.id = ${program_id} and t.status = 'active'`,
    sql`for no key update of t`,
  );
  if (!program) return;
  const existing = await tx.maybe(sql`
    select from program.payout_batch t where ${tenant(tx)} and t.program_id = ${program_id} and t.scheduled_for = ${month}::timestamptz`);
  if (existing) return;
  const times = { cutoff: month, due_at: dueAt(program, month), scheduled_for: month };
  await createBatch(tx, program, { ...times, created_by_user_id: null });
}
