import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';

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
