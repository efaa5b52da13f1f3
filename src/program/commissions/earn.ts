import sql, { type Sql } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Partner } from '../partners/partner.ts';
import { tagsOf } from '../partners/tag.ts';
import type { Program } from '../programs/program.ts';
import { safeSum } from '../programs/tally.ts';
import { type CameBy, cameBy, type Visited } from '../sales/came_by.ts';
import type { AmountParts } from '../sales/net_amount.ts';
import type { Sale } from '../sales/sale.ts';
import { commissionBase, type Rate } from './commission_rate.ts';
import { uncounted_statuses } from './commission_state.ts';
import { rules } from './rule.ts';
import { type CommissionOutcome, chooseRule, commissionFor, type Rule, type SaleContext } from './rule_choice.ts';

/** The terms by which a partner is paid, besides the sale itself. */
export interface Terms {
  rules: (Rule & { payments: number })[];
  tag_ids: string[];
  came_by: CameBy;
}

/** The partner who is credited with the sale, and when its customer first paid: null when by this sale. */
interface Credit {
  partner: Partner;
  first_sale_at: string | null;
}

/** A sale, recorded or about to be. */
export type EarningSale = Pick<
  Sale,
  | keyof AmountParts
  | 'id'
  | 'partner_id'
  | 'occurred_at'
  | 'created_at'
  | 'currency'
  | 'net_amount_minor'
  | 'is_first_sale'
  | 'product_id'
>;

/** The facts of a sale that decide the terms: the credited partner, and the link or the coupon that its customer came by, whoever the partner of that is. */
export interface Sold {
  program_id: string;
  partner_id: string;
  customer_id: string | undefined;
  came_by: Visited;
}

/**
 * The terms of sales, in their order, all read at once.
 * @param sale_id whose own commissions are not counted; null for sales that have none yet
 */
export async function termsOf(tx: Tx, many: Sold[], sale_id: string | null = null): Promise<Terms[]> {
  const program_ids = unique(many.map(({ program_id }) => program_id));
  const partner_ids = unique(many.map(({ partner_id }) => partner_id));
  const customer_ids = unique(many.flatMap(({ customer_id }) => customer_id ?? []));
  const isApplied = sql`${rules.alive} and t.status = 'active' and (t.partner_ids = '{}' or t.partner_ids && ${partner_ids}::text[])`;
  const [active_rules, counted, tagged, came_by] = await together([
    tx.all<Rule & { program_id: string }>(sql`
      select ${rules.columns} from ${rules.from}
      where ${tenant(tx)} and t.program_id = any(${program_ids}) and ${isApplied}`),
    customer_ids.length === 0 ? [] : paymentsOf(tx, customer_ids, isApplied, sale_id),
    tagsOf(tx, partner_ids),
    cameBy(tx, many),
  ]);
  const by_program = Map.groupBy(active_rules, ({ program_id }) => program_id);
  const payments = new Map(counted.map((one) => [`${one.customer_id} ${one.rule_id}`, one.payments]));
  return many.map(({ program_id, partner_id, customer_id }, nth) => ({
    rules: (by_program.get(program_id) ?? [])
      .filter(({ partner_ids }) => partner_ids.length === 0 || partner_ids.includes(partner_id))
      .map((rule) => ({ ...rule, payments: payments.get(`${customer_id} ${rule.id}`) ?? 0 })),
    tag_ids: tagged.get(partner_id) ?? [],
    came_by: came_by[nth] as CameBy,
  }));
}

export const termsOfOne = async (tx: Tx, sold: Sold, sale_id?: string): Promise<Terms> =>
  (await termsOf(tx, [sold], sale_id))[0] as Terms;

const unique = (values: string[]): string[] => [...new Set(values)];

/**
 * Counts the sales of each customer that each of these rules `t` pays for, if it pays for a limited number: one whose commission was clawed back
 * whole is none. Counts no further than that number, by an index.
 */
const paymentsOf = (
  tx: Tx,
  customer_ids: string[],
  isApplied: Sql,
  sale_id: string | null,
): Promise<{ customer_id: string; rule_id: string; payments: number }[]> =>
  tx.all(sql`
    select u.id as customer_id, t.id as rule_id, (
      select count(*) from (
        select from program.commission c
        where c.organization_id = t.organization_id and c.customer_id = u.id and c.rule_id = t.id
          and c.sale_id is distinct from ${sale_id} and c.deleted_at is null and c.status not in ${uncounted_statuses}
        group by c.sale_id
        having sum(c.amount_minor) > 0
        limit t.max_payments
      ) as paid
    ) as payments
    from program.customer u
    join ${rules.from} on t.organization_id = u.organization_id and t.program_id = u.program_id
    where u.organization_id = ${tx.organization_id} and u.id = any(${customer_ids}) and t.max_payments is not null and ${isApplied}`);

/** Evaluates the rules, in the request's transaction, "because its answer says what followed". */
export async function earnedBy(
  tx: Tx,
  program: Program,
  sale: EarningSale,
  { partner, first_sale_at }: Credit,
  terms: Terms,
): Promise<CommissionOutcome> {
  if (partner.status !== 'active') return { outcome: 'none', warning: 'no_commission_from_rules' };
  const context = contextOf(program, sale, { partner, first_sale_at }, terms);
  const chosen = chooseRule(terms.rules, context)?.rule_id;
  const isTiered = terms.rules.some(({ id, tiers }) => id === chosen && tiers.length > 0);
  const month = isTiered ? await monthOf(tx, sale) : {};
  return exactly(() => commissionFor(terms.rules, { ...context, ...month }));
}

/** Returns the facts that rules compare with, but for the partner's month: that is read for tiers alone. */
function contextOf(
  program: Program,
  sale: EarningSale,
  { partner, first_sale_at }: Credit,
  { rules: active_rules, tag_ids, came_by }: Terms,
): SaleContext {
  const { occurred_at, amount_minor, currency, is_first_sale, product_id } = sale;
  return {
    occurred_at,
    amount_minor,
    base_minor: commissionBase(sale, program.commission_on_net_revenue),
    currency,
    program_currency: program.currency,
    is_first_sale,
    partner_id: partner.id,
    link_id: came_by.link_id,
    group_id: partner.group_id,
    tag_ids,
    product_id,
    rate_override: came_by.rate_override as Rate | null,
    first_sale_at,
    payments_by_rule: Object.fromEntries(active_rules.map(({ id, payments }) => [id, payments])),
    month_sales_count: 0,
    month_revenue_minor: 0,
  };
}

/** @throws Problem invalid_parameter where a result is beyond the integers that JSON carries exactly */
export function exactly<T>(compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Problem(
      'invalid_parameter',
      'The amounts are too large: the amounts computed from them must be below 2^53 minor units. Send smaller ones.',
      {
        param: 'amount_minor',
      },
    );
  }
}

/**
 * The partner's sales in the calendar month of this one (UTC), before it; revenue in this sale's currency. Sales of one partner wait here for
 * each other, so that of several at once each counts those before it: whatever is recorded by then and did not come later.
 */
async function monthOf(
  tx: Tx,
  { id: sale_id, partner_id, occurred_at, created_at, currency: code }: EarningSale,
): Promise<{ month_sales_count: number; month_revenue_minor: number }> {
  await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${partner_id}, 3))`);
  return tx.one(sql`
    select count(*) as month_sales_count, ${safeSum(sql`sum(t.amount_minor) filter (where t.currency = ${code})`)} as month_revenue_minor
    from program.sale t
    where ${tenant(tx)} and t.partner_id = ${partner_id} and t.deleted_at is null and t.id <> ${sale_id}
      and t.occurred_at >= date_trunc('month', ${occurred_at}::timestamptz, 'UTC')
      and t.occurred_at < (date_trunc('month', ${occurred_at}::timestamptz at time zone 'UTC') + interval '1 month') at time zone 'UTC'
      and ${isBefore({ id: sale_id, occurred_at, created_at }, tx.now)}`);
}

/** Selects the sales `t` that came before one. Of one that is recorded now for now, also those that waited shorter and carry a later time. */
function isBefore({ id, occurred_at, created_at }: Pick<Sale, 'id' | 'occurred_at' | 'created_at'>, now: string): Sql {
  if (created_at !== now) return sql`(t.occurred_at, t.id) < (${occurred_at}::timestamptz, ${id})`;
  return occurred_at === now
    ? sql`t.occurred_at <= clock_timestamp()`
    : sql`t.occurred_at <= ${occurred_at}::timestamptz`;
}
