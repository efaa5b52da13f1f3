import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';

/**
 * Deletes links and emits `affiliate_link.deleted` for each: clicks on them are no longer attributed, and their values can be used again.
 * @param condition a condition on the links `t`
 * @returns how many, at most `most`
 */
export async function deleteLinks(tx: Tx, condition: Sql, most: number): Promise<number> {
  const links = await tx.all<{ link_id: string; program_id: string; partner_id: string }>(sql`
    with chosen as (
      select t.id
      from program.link t
      where ${tenant(tx)} and t.deleted_at is null and ${condition}
      order by t.id
      limit ${most}
      for no key update
    ),
    deleted as (
      update program.link t set deleted_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(array(select c.id from chosen c))
      returning t.id as link_id, t.program_id, t.partner_id
    )
    select d.* from deleted d order by d.link_id`);
  for (const link of links) tx.emit(event('affiliate_link.deleted', link));
  return links.length;
}
