import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';

/**
 * Deletes links and emits `affiliate_link.deleted` for each: clicks on them are no longer attributed, and their values can be used again.
 * @param condition a condition on the links `t`
 */
export async function deleteLinks(tx: Tx, condition: Sql): Promise<void> {
  const links = await tx.all<{ link_id: string; program_id: string; partner_id: string }>(sql`
    update program.link t set deleted_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.deleted_at is null and ${condition}
    returning t.id as link_id, t.program_id, t.partner_id`);
  for (const link of links) tx.emit(event('affiliate_link.deleted', link));
}
