/** What the scheduled task looks for, apart from what is done about it: a worker that finds nothing does not load that. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { maturing_statuses } from './commission_state.ts';

/** Organizations that have commissions whose holding period ended by `at`. Reads across tenants: for the scheduled task alone. */
export const organizationsWithMature = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`
    select distinct t.organization_id
    from program.commission t
    where t.status in ${maturing_statuses} and t.deleted_at is null and t.mature_at <= ${at}::timestamptz`);
