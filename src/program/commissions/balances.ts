import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';

/** A sum that a partner has earned and was not paid, or was paid. On hold is what a person or a dispute keeps back. */
export interface Balance {
  state: 'pending' | 'due' | 'on_hold' | 'paid';
  currency: string;
  amount_minor: number;
}

/** By the index of open commissions and the payouts, of which there are few: however long the partner has earned. */
export const balancesOf = (tx: Tx, { id, program_id }: { id: string; program_id: string }): Promise<Balance[]> =>
  tx.all<Balance>(sql`
    select case when t.status in ('due', 'on_hold') then t.status else 'pending' end as state, t.currency, sum(t.amount_minor)::bigint as amount_minor
    from program.commission t
    where t.organization_id = ${tx.organization_id} and t.program_id = ${program_id} and t.partner_id = ${id}
      and t.status in ('pending', 'approved', 'due', 'on_hold') and t.deleted_at is null
    group by 1, 2
    union all
    select 'paid', p.currency, sum(p.amount_minor)::bigint
    from program.payout p
    where p.organization_id = ${tx.organization_id} and p.partner_id = ${id} and p.deleted_at is null and p.status = 'paid' and p.livemode
    group by 2
    order by 2, 1`);
