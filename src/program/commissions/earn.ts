import sql, { join, type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Customer } from '../customers/customer.ts';
import type { Partner } from '../partners/partner.ts';
import { tagsOf } from '../partners/tag.ts';
import type { Program } from '../programs/program.ts';
import { safeSum } from '../programs/tally.ts';
import type { Sale } from '../sales/sale.ts';
import { commissionBase, type Rate } from './commission_rate.ts';
import { uncounted_statuses } from './commission_state.ts';
import { rules } from './rule.ts';
import { type CommissionOutcome, chooseRule, commissionFor, type Rule, type SaleContext } from './rule_choice.ts';

/** The partner who is credited with the sale, and the customer's history. */
interface Credit {
  partner: Partner;
  customer?: Customer | undefined;
  first_sale_at: string | null;
}

/** Evaluates the rules, in the request's transaction, "because its answer says what followed". */
export async function earnedBy(tx: Tx, program: Program, sale: Sale, credit: Credit): Promise<CommissionOutcome> {
  if (credit.partner.status !== 'active') return { outcome: 'none', warning: 'no_commission_from_rules' };
  const active_rules = await rulesFor(tx, program, credit.partner);
  const context = await contextOf(tx, program, sale, credit, active_rules);
  const chosen = chooseRule(active_rules, context)?.rule_id;
  const isTiered = active_rules.some(({ id, tiers }) => id === chosen && tiers.length > 0);
  const month = isTiered ? await monthOf(tx, sale) : {};
  return exactly(() => commissionFor(active_rules, { ...context, ...month }));
}

/** The active rules, but for those that name other partners: each partner with a deal has one. */
const rulesFor = (tx: Tx, program: Program, partner: Credit['partner']): Promise<Rule[]> =>
  tx.all<Rule>(sql`
    select ${rules.columns} from ${rules.from}
    where ${tenant(tx)} and t.program_id = ${program.id} and ${rules.alive} and t.status = 'active'
      and (t.partner_ids = '{}' or ${partner.id} = any(t.partner_ids))`);

/** What the rules may know of the sale, but for the partner's month: that is read for tiers alone. */
async function contextOf(
  tx: Tx,
  program: Program,
  sale: Sale,
  { partner, customer, first_sale_at }: Credit,
  active_rules: Rule[],
): Promise<SaleContext> {
  const [tag_ids, rate_override, payments] = await Promise.all([
    tagsOf(tx, partner.id),
    rateOverride(tx, sale),
    customer === undefined ? [] : paymentsOf(tx, customer, sale, active_rules),
  ]);
  const { occurred_at, amount_minor, currency, is_first_sale, link_id, product_id } = sale;
  return {
    occurred_at,
    amount_minor,
    base_minor: commissionBase(sale, program.commission_on_net_revenue),
    currency,
    program_currency: program.currency,
    is_first_sale,
    partner_id: partner.id,
    link_id,
    group_id: partner.group_id,
    tag_ids,
    product_id,
    rate_override,
    first_sale_at,
    payments_by_rule: Object.fromEntries(payments.map(({ rule_id, payments: count }) => [rule_id, count])),
    month_sales_count: 0,
    month_revenue_minor: 0,
  };
}

async function rateOverride(tx: Tx, { link_id }: Sale): Promise<Rate | null> {
  if (link_id === null) return null;
  const link = await tx.maybe<{ rate_override: Rate | null }>(
    sql`select t.rate_override from program.link t where ${tenant(tx)} and t.id = ${link_id}`,
  );
  return link?.rate_override ?? null;
}

/**
 * How many other sales of the customer each rule pays for that pays for so many at most: one whose commission was clawed back whole is none. Counts
 * no further than that number, by an index.
 */
async function paymentsOf(
  tx: Tx,
  { id: customer_id }: Customer,
  { id: sale_id }: Sale,
  active_rules: Rule[],
): Promise<{ rule_id: string; payments: number }[]> {
  const paidBy = ({ id: rule_id, max_payments }: Rule) => sql`
    select ${rule_id} as rule_id, (
      select count(*) from (
        select from program.commission t
        where ${tenant(tx)} and t.customer_id = ${customer_id} and t.rule_id = ${rule_id} and t.sale_id <> ${sale_id}
          and t.deleted_at is null and t.status not in ${uncounted_statuses}
        group by t.sale_id
        having sum(t.amount_minor) > 0
        limit ${max_payments}
      ) as paid
    ) as payments`;
  const limited = active_rules.filter(({ max_payments }) => max_payments !== null);
  return limited.length === 0 ? [] : tx.all(join(limited.map(paidBy), ' union all '));
}

/** @throws Problem invalid_parameter where a result is beyond the integers that JSON carries exactly */
export function exactly<T>(compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Problem(
      'invalid_parameter',
      'The amounts are too large: the amounts computed from them must be below 2^53 minor units.',
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
  { id: sale_id, partner_id, occurred_at, created_at, currency: code }: Sale,
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

/** Which sales `t` came before one. Of one that is recorded now for now, also those that waited shorter and carry a later time. */
function isBefore({ id, occurred_at, created_at }: Pick<Sale, 'id' | 'occurred_at' | 'created_at'>, now: string): Sql {
  if (created_at !== now) return sql`(t.occurred_at, t.id) < (${occurred_at}::timestamptz, ${id})`;
  return occurred_at === now
    ? sql`t.occurred_at <= clock_timestamp()`
    : sql`t.occurred_at <= ${occurred_at}::timestamptz`;
}
