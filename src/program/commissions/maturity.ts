import sql, { empty } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import { type Commission, commissions } from './commission.ts';
import { maturing_statuses } from './commission_state.ts';

/**
 * "`pending` or `approved` → `due` when mature", `commission.updated` each, oldest first, at most `most` of them.
 * Those that another transaction holds are left to the next run, unless this waits for them. Those of a deleted partner are to be voided.
 * @returns how many matured: fewer than `most` when none is left
 */
export async function matureCommissions(tx: Tx, at: string, most: number, { waits = false } = {}): Promise<number> {
  const matured = await tx.all<Commission & { previous_status: string }>(sql`
    with ripe as (
      select t.id, t.status as previous_status
      from program.commission t
      where ${tenant(tx)} and t.status in ${maturing_statuses} and t.deleted_at is null and t.mature_at <= ${at}::timestamptz
        and (select p.deleted_at from program.partner p where p.organization_id = t.organization_id and p.id = t.partner_id) is null
      order by t.mature_at, t.id
      limit ${most}
      for no key update ${waits ? empty : sql`skip locked`}
    ),
    matured as (
      update program.commission t
      set status = 'due', updated_at = ${tx.now}::timestamptz
      from ripe
      where ${tenant(tx)} and t.id = ripe.id
      returning ${commissions.columns}, ripe.previous_status
    )
    select matured.* from matured order by mature_at, id`);
  for (const commission of matured) tx.emit(event('commission.updated', commission));
  return matured.length;
}
