import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/catalogue.ts';

/**
 * Deletes links, `affiliate_link.deleted` each: clicks on them no longer attribute, and their values are free.
 * @param which a condition on `t`
 */
export async function deleteLinks(tx: Tx, which: Sql): Promise<void> {
  const deleted = await tx.all<{ id: string; program_id: string; partner_id: string }>(sql`
    update program.link t set deleted_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.deleted_at is null and ${which}
    returning t.id, t.program_id, t.partner_id`);
  for (const { id: link_id, program_id, partner_id } of deleted) {
    tx.emit(event('affiliate_link.deleted', program_id, { link_id, partner_id }));
  }
}
