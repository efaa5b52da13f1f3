import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import { event } from '../events/event.ts';
import { type Cause, type Commission, commissions } from './commission.ts';
import { not_on_hold, open_statuses } from './commission_state.ts';
import { by_dispute } from './disputed.ts';

/**
 * Cancels an unpaid commission and emits `commission.voided`. A hold by hand is kept for when it is earned again.
 * The caller has stated the cause (`because`).
 * @param kept of a cancellation by hand
 */
export async function voidCommission(
  tx: Tx,
  commission: Commission,
  reason: string,
  kept: Values = { edited_by_hand: false, held_for: heldByHand(commission) },
): Promise<Commission> {
  const voided = await commissions.update(tx, commission.id, {
    status: 'voided',
    voided_at: tx.now,
    void_reason: reason,
    ...not_on_hold,
    ...kept,
  });
  tx.emit(event('commission.voided', voided, { reason }));
  return voided;
}

const heldByHand = ({ hold_reason }: Commission): string | null => (hold_reason === by_dispute ? null : hold_reason);

/**
 * Voids the unpaid commissions of a partner, at most `most` of them: `commission.voided` each. Those in a payout stay: the payout decides.
 * @param reason machine-readable: `partner_deleted`
 * @returns how many
 */
export const voidOpenCommissions = (
  tx: Tx,
  { id: partner_id, program_id }: { id: string; program_id: string },
  reason: Cause,
  most: number,
): Promise<number> =>
  voidCommissions(
    tx,
    sql`t.program_id = ${program_id} and t.partner_id = ${partner_id} and t.payout_id is null`,
    reason,
    sql`limit ${most}`,
  );

/** Voids the unpaid commissions among these, called `t`: `commission.voided` each. @returns how many */
export async function voidCommissions(tx: Tx, which: Sql, reason: Cause, limit: Sql = empty): Promise<number> {
  const voided = await tx.all<Commission>(sql`
    with open as (
      select t.id
      from program.commission t
      where ${tenant(tx)} and ${which} and t.status in ${open_statuses} and t.deleted_at is null
      order by t.id
      ${limit}
      for no key update
    ),
    voided as (
      update program.commission t
      set status = 'voided', voided_at = ${tx.now}::timestamptz, void_reason = ${reason}, hold_reason = null, held_at = null, updated_at = ${tx.now}::timestamptz
      where ${tenant(tx)} and t.id = any(array(select o.id from open o)) and program.because(${reason})
      returning ${commissions.columns}
    )
    select voided.* from voided order by id`);
  for (const commission of voided) tx.emit(event('commission.voided', commission, { reason }));
  return voided.length;
}
