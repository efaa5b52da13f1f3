/** Commissions of sales that customers dispute at their bank. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { allows } from '../../core/resource/states.ts';
import { type Commission, changeCommission, commissions } from './commission.ts';
import { commission_states, not_on_hold, releasedTo } from './commission_state.ts';

/** The `hold_reason` of a commission whose sale is disputed. */
export const by_dispute = 'dispute';

/** The condition that a dispute is open for a sale, here called `t.sale_id`. */
const is_disputed = sql`exists (
  select from program.dispute d
  where d.organization_id = t.organization_id and d.sale_id = t.sale_id and d.status = 'open' and d.deleted_at is null
)`;

/**
 * Makes the commissions of a sale follow its disputes: while one is open, what is unpaid and in no payout is on hold; afterwards it is released. One
 * that was put on hold by hand stays so. The commissions are locked before the disputes are read: who frees a commission of a payout, and who opens
 * or closes a dispute at the same time, wait for each other here.
 */
export async function followDisputes(tx: Tx, sale_id: string): Promise<void> {
  const of_sale = await tx.all<Commission>(sql`
    select ${commissions.columns}
    from ${commissions.from}
    where ${tenant(tx)} and t.sale_id = ${sale_id} and ${commissions.alive}
    order by t.id
    for no key update of t`);
  if (of_sale.length === 0) return;
  const disputed = await isDisputed(tx, sale_id);
  for (const commission of of_sale) {
    if (disputed && isPayable(commission))
      await changeCommission(tx, commission, { status: 'on_hold', hold_reason: by_dispute, held_at: tx.now });
    else if (!disputed && commission.hold_reason === by_dispute) await releaseCommission(tx, commission);
  }
}

/** The same for commissions that have left a payout. */
export async function followDisputesOf(tx: Tx, freed: Pick<Commission, 'id'>[]): Promise<void> {
  const disputed = await tx.all<{ sale_id: string }>(sql`
    select distinct t.sale_id
    from program.commission t
    where ${tenant(tx)} and t.id = any(${freed.map(({ id }) => id)}) and ${is_disputed}
    order by t.sale_id`);
  for (const { sale_id } of disputed) await followDisputes(tx, sale_id);
}

/** Returns whether a dispute is open for a sale, whose commissions the caller has locked. */
export async function isDisputed(tx: Tx, sale_id: string): Promise<boolean> {
  const { disputed } = await tx.one<{ disputed: boolean }>(
    sql`select ${is_disputed} as disputed from (values (${tx.organization_id}, ${sale_id})) as t (organization_id, sale_id)`,
  );
  return disputed;
}

/** A batch would pay it, now or when it is mature. */
const isPayable = ({ status, payout_id, kind }: Commission): boolean =>
  allows(commission_states, status, 'hold') && payout_id === null && kind !== 'clawback';

export const releaseCommission = (tx: Tx, before: Commission): Promise<Commission> =>
  changeCommission(tx, before, { status: releasedTo(before, tx.now), ...not_on_hold });
