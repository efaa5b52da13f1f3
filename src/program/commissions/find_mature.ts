/** Finds the work of the scheduled task. Kept apart from doing it, so that a worker that finds none does not load that code. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { maturing_statuses } from './commission_state.ts';

const maturing = sql`t.status in ${maturing_statuses} and t.deleted_at is null`;

/**
 * Organizations that have commissions whose holding period ended by `at`: from one to the next by the index, without a look at all of their commissions.
 * Reads across tenants: for the scheduled task alone.
 */
export const organizationsWithMature = (tx: Tx, at: string): Promise<{ organization_id: string }[]> =>
  tx.all(sql`
    with recursive waiting (organization_id) as (
      (select t.organization_id from program.commission t where ${maturing} order by t.organization_id limit 1)
      union all
      select (
        select t.organization_id from program.commission t
        where ${maturing} and t.organization_id > w.organization_id
        order by t.organization_id limit 1
      )
      from waiting w
      where w.organization_id is not null
    )
    select w.organization_id
    from waiting w
    where exists (
      select from program.commission t
      where ${maturing} and t.organization_id = w.organization_id and t.mature_at <= ${at}::timestamptz
    )`);
