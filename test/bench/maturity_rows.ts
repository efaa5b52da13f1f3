import type pg from 'pg';
import { partnerId } from './payout_rows.ts';
import type { Owner } from './rows.ts';

/**
 * Gives a program commissions of so many sales, whose holding periods have ended in the last day, in place of those that it has; without triggers and
 * without their sales. No sums count them.
 */
export async function fillMaturing(
  client: pg.Client,
  { organization_id, program_id }: Owner,
  { commissions, partners }: { commissions: number; partners: number },
): Promise<void> {
  await client.query('set session_replication_role = replica');
  await client.query('delete from program.commission where organization_id = $1 and program_id = $2', [
    organization_id,
    program_id,
  ]);
  await client.query(`
    insert into program.commission (
      organization_id, id, program_id, partner_id, customer_id, sale_id, rule_id, kind, amount_minor, base_amount_minor, currency, rate_type, rate_value,
      status, mature_at, created_at, updated_at
    )
    select '${organization_id}', 'com_' || s.tail, '${program_id}', ${partnerId(`1 + (s.n::bigint * 7919) % ${partners}`)},
      'cus_' || s.tail, 'sale_' || s.tail, 'flw_' || repeat('0', 26), 'sale', 1980, 9900, 'USD', 'percent', 2000,
      'pending', s.at + interval '28 days', s.at, s.at
    from (
      select n, at, core.id_time_part(at) || 'e00g' || lpad(n::text, 12, '0') as tail
      from (
        select n, date_trunc('milliseconds', now()) - interval '29 days' + interval '1 day' * n / ${commissions + 1} as at
        from generate_series(1, ${commissions}) as n
      ) as spread
    ) as s`);
  await client.query('set session_replication_role = origin');
  await client.query('update program.fold set seen = pg_current_snapshot() where organization_id = $1', [
    organization_id,
  ]);
  await client.query('vacuum (analyze) program.commission, program.partner');
}
