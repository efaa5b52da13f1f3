import sql, { type Sql } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { safeSum } from '../programs/tally.ts';
import type { PlaceFacts } from '../sales/decision.ts';
import { isAfter } from '../sales/place.ts';
import type { Sale } from '../sales/sale.ts';

interface Month extends NonNullable<PlaceFacts['month']> {
  /** True if sales of the month come after this one. */
  has_later: boolean;
}

type PlacedSale = Pick<Sale, 'id' | 'partner_id' | 'occurred_at' | 'created_at' | 'external_charge_id' | 'currency'>;

/**
 * The partner's sales in the calendar month of this one (UTC), before it; revenue in this sale's currency. Sales of one partner wait here for
 * each other, so that of several at once each counts those before it: whatever is recorded by then and did not come later. The sum of the month is
 * kept: what is read are the sales that come after this one.
 */
export async function partnerMonth(
  tx: Tx,
  { id: sale_id, partner_id, occurred_at, created_at, external_charge_id, currency }: PlacedSale,
): Promise<Month> {
  const isLater =
    created_at === tx.now && occurred_at >= tx.now
      ? // One that is recorded now for now comes also after those that waited shorter and carry a later time.
        sql`t.occurred_at > greatest(statement_timestamp(), ${occurred_at}::timestamptz)`
      : isAfter({ at: occurred_at, charge: external_charge_id });
  const inMonth = sql`${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null and ${inMonthOf(occurred_at)}`;
  const [, month] = await together([
    tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${partner_id}, 3))`),
    tx.one<Month>(sql`
    with counted as (
      select n.kind as currency, n.rows, n.amount_minor, false as is_later
      from program.sales_of_month(${tx.organization_id}, ${partner_id}, ${occurred_at}::timestamptz) n
      union all
      select t.currency, -1, -t.amount_minor, true from program.sale t where ${inMonth} and ${isLater} and t.id <> ${sale_id}
      union all
      select t.currency, -1, -t.amount_minor, false from program.sale t where ${inMonth} and t.id = ${sale_id}
    )
    select
      coalesce(sum(n.rows), 0)::bigint as sales_count, coalesce(bool_or(n.is_later), false) as has_later,
      ${safeSum(sql`sum(n.amount_minor) filter (where n.currency = ${currency})`)} as revenue_minor
    from counted n`),
  ]);
  return month;
}

/** Selects the sales `t` in the calendar month (UTC) of a time. */
export const inMonthOf = (at: string): Sql => sql`t.occurred_at >= date_trunc('month', ${at}::timestamptz, 'UTC')
      and t.occurred_at < (date_trunc('month', ${at}::timestamptz at time zone 'UTC') + interval '1 month') at time zone 'UTC'`;
