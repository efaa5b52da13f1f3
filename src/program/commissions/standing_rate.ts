import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Rate } from './commission_rate.ts';
import { rules } from './rule.ts';
import { chooseRule, type Rule, type SaleContext } from './rule_choice.ts';

/** The rates at which a partner earns by no link of their own and for no product: null where no rule pays. */
export interface StandingRate {
  /** The first payment of a customer. */
  first: Rate | null;
  /** The next payment after it. */
  renewal: Rate | null;
}

interface Earner {
  id: string;
  group_id: string | null;
  tag_ids: readonly string[];
}

/**
 * Returns what a partner earns at a time, as `chooseRule` decides it for a sale that is large enough for every rule, below all tiers. Pure.
 * @param at ISO 8601, UTC
 */
export function standingRate(all: readonly Rule[], { id, group_id, tag_ids }: Earner, at: string): StandingRate {
  const sale: SaleContext = {
    ...{ occurred_at: at, partner_id: id, group_id, tag_ids, link_id: null, product_id: null, rate_override: null },
    ...{ amount_minor: Number.MAX_SAFE_INTEGER, base_minor: Number.MAX_SAFE_INTEGER },
    ...{ currency: 'USD', program_currency: 'USD', month_sales_count: 0, month_revenue_minor: 0 },
    ...{ payments_by_rule: {}, is_first_sale: true, first_sale_at: null },
  };
  const rateOf = (of: SaleContext): Rate | null => {
    const choice = chooseRule(all, of);
    return choice && { rate_type: choice.rate_type, rate_value: choice.rate_value };
  };
  return { first: rateOf(sale), renewal: rateOf({ ...sale, is_first_sale: false, first_sale_at: at }) };
}

/** The rules of a program that can pay some partners: those that name others are left out, of which there may be one for each partner. */
export const payingRules = (
  tx: Tx,
  organization_id: string,
  program_id: string,
  partner_ids: string[],
): Promise<Rule[]> =>
  tx.all<Rule>(sql`
    select ${rules.columns} from ${rules.from}
    where t.organization_id = ${organization_id} and t.program_id = ${program_id} and t.status = 'active' and ${rules.alive}
      and (t.partner_ids = '{}' or t.partner_ids && ${partner_ids}::text[])`);
