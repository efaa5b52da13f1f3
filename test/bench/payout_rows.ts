import type pg from 'pg';
import type { Owner } from './rows.ts';

/** The number of commissions of a partner who is paid. */
export const commissions_each = 10;

export const partnerId = (nth: string): string => `'part_payee' || lpad((${nth})::text, 21, '0')`;

/** The partners who are paid, in the order of their ids. */
export const payeeId = (nth: number): string => `part_payee${String(nth).padStart(21, '0')}`;

/**
 * Gives a program partners with a payout method, each with ten commissions that are due, a table in one statement, without triggers. Every
 * tenth partner has no payout method. Partners earn in no order: a page of commissions holds those of many.
 */
export async function fillPayees(client: pg.Client, owner: Owner, partners: number): Promise<void> {
  const [organization, program] = [`'${owner.organization_id}'`, `'${owner.program_id}'`];
  await client.query('set session_replication_role = replica');
  await client.query(`
    insert into program.partner (organization_id, id, program_id, group_id, email, mailbox, handle, status, currency)
    select ${organization}, ${partnerId('n')}, ${program},
      (select id from program.partner_group where organization_id = ${organization} and program_id = ${program} limit 1),
      'payee-' || n || '@example.com', 'payee-' || n || '@example.com', 'payee-' || n, 'active', 'USD'
    from generate_series(1, ${partners}) as n`);
  await client.query(`
    insert into program.payout_method (organization_id, partner_id, method, details, hint)
    select ${organization}, ${partnerId('n')}, 'paypal', '', '.com' from generate_series(1, ${partners}) as n where n % 10 > 0`);
  await client.query(`
    insert into program.commission (
      organization_id, id, program_id, partner_id, kind, amount_minor, currency, status, mature_at, created_at, updated_at
    )
    select ${organization}, 'com_' || core.id_time_part(at) || 'e00g' || lpad(n::text, 12, '0'), ${program},
      ${partnerId(`1 + (n::bigint * 7919) % ${partners}`)}, 'bonus', 1980 + n % 100, 'USD', 'due', at, at, at
    from (
      select n, date_trunc('milliseconds', now()) - interval '28 days' * (${partners * commissions_each} - n + 1) / ${partners * commissions_each} as at
      from generate_series(1, ${partners * commissions_each}) as n
    ) as spread`);
  await client.query('set session_replication_role = origin');
}

/** Takes all commissions out of their payouts, and deletes what batches wrote. */
export async function undoBatches(client: pg.Client, { organization_id, program_id }: Owner): Promise<void> {
  await client.query('set session_replication_role = replica');
  await client.query(
    `update program.commission set payout_id = null where organization_id = $1 and program_id = $2 and payout_id is not null`,
    [organization_id, program_id],
  );
  await client.query('delete from program.payout_commission where organization_id = $1', [organization_id]);
  await client.query(`delete from program.payout where organization_id = $1 and program_id = $2`, [
    organization_id,
    program_id,
  ]);
  await client.query('set session_replication_role = origin');
  await client.query('vacuum (analyze) program.commission, program.payout, program.payout_commission');
}
