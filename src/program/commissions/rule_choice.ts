/**
 * Chooses the rule that pays a sale and computes the amount, as pure functions on plain values: see README.md.
 *
 * Every `_minor` is an integer in minor units, every percent `rate_value` is in basis points, every `_at` is ISO 8601 in UTC. JPY and KWD need
 * nothing special: minor units are integers whatever their number of digits.
 */

import { type CopiedRate, commissionAmount, type Rate } from './commission_rate.ts';

/** From `from` sales, or `from` minor units of revenue, in the partner's calendar month on: this rate_value. */
export type Tier = { from: number; rate_value: number };

export type TierMetric = 'sales_count' | 'revenue_minor';

export type Rule = Rate & {
  id: string;
  name: string;
  priority: number;
  status: 'active' | 'inactive';
  applies_to: 'all' | 'first' | 'renewals';
  partner_ids: readonly string[];
  group_ids: readonly string[];
  tag_ids: readonly string[];
  link_ids: readonly string[];
  product_ids: readonly string[];
  duration_months: number | null;
  max_payments: number | null;
  min_sale_minor: number | null;
  max_commission_minor: number | null;
  tiers: readonly Tier[];
  tier_metric: TierMetric | null;
  starts_at: string | null;
  ends_at: string | null;
  created_at: string;
};

/** The facts about a sale, its partner and its customer that rules compare with. */
export type SaleContext = {
  occurred_at: string;
  amount_minor: number;
  /** From `commissionBase`. */
  base_minor: number;
  currency: string;
  program_currency: string;
  is_first_sale: boolean;
  partner_id: string;
  link_id: string | null;
  group_id: string | null;
  tag_ids: readonly string[];
  product_id: string | null;
  /** The link's, or null where the link has none. */
  rate_override: Rate | null;
  /** The time of the customer's first sale; null when this one is the first. */
  first_sale_at: string | null;
  /** Sales of this customer before this one that each rule paid for. A rule that is not named paid none. */
  payments_by_rule: Readonly<Record<string, number>>;
  /** The partner's sales in the UTC calendar month of occurred_at, before this one. */
  month_sales_count: number;
  month_revenue_minor: number;
};

/** rule_id is null when the link's rate_override was chosen. */
export type Choice = CopiedRate & { rule_id: string | null };

export type CommissionOutcome =
  | (Choice & { outcome: 'commission'; base_amount_minor: number; amount_minor: number; currency: string })
  | { outcome: 'none'; warning: 'no_commission_from_rules' | 'fixed_rate_currency_mismatch' };

/**
 * Returns the commission of a sale, by the one rule that is the best match. "One rule pays per sale."
 *
 * A fixed rate pays nothing on a sale in another currency, and the next rule is not asked: the merchant chose this rate for this partner, so another
 * rate would be a payment that nobody decided on, and the merchant would not see the warning. A sale of 0 earns nothing, also by a fixed rate. A
 * commission of 0 is none: `commission_created` is for "when money followed".
 * @throws RangeError when an amount is not a safe integer
 */
export function commissionFor(rules: readonly Rule[], sale: SaleContext): CommissionOutcome {
  const choice = sale.amount_minor === 0 ? null : chooseRule(rules, sale);
  if (choice === null) return { outcome: 'none', warning: 'no_commission_from_rules' };
  if (choice.rate_type === 'fixed' && sale.currency !== sale.program_currency) {
    return { outcome: 'none', warning: 'fixed_rate_currency_mismatch' };
  }
  const amount_minor = commissionAmount(choice, sale.base_minor);
  if (amount_minor === 0) return { outcome: 'none', warning: 'no_commission_from_rules' };
  return {
    outcome: 'commission',
    ...choice,
    base_amount_minor: sale.base_minor,
    amount_minor,
    currency: sale.currency,
  };
}

/**
 * The link's rate_override, or the best of the rules that apply, with the rate_value of its tier; null when none does.
 * "Choice: a link's rate_override, then rules that name the partner, then its link, then its group or tags, then the rest;
 * inside a class higher priority, then the older." An override has no conditions and no cap. The order in which the rules
 * are given means nothing; of two as old as each other the lower id is chosen.
 */
export function chooseRule(rules: readonly Rule[], sale: SaleContext): Choice | null {
  if (sale.rate_override !== null) {
    const { rate_type, rate_value } = sale.rate_override;
    return { rule_id: null, rate_type, rate_value, max_commission_minor: null };
  }
  let best: Rule | null = null;
  for (const rule of rules) {
    if (ruleApplies(rule, sale) && (best === null || compareRules(rule, best) < 0)) best = rule;
  }
  if (best === null) return null;
  const { id, rate_type, max_commission_minor } = best;
  return { rule_id: id, rate_type, rate_value: rateValueAt(best, sale), max_commission_minor };
}

/**
 * Returns whether every condition of the rule holds. An empty list is "any"; a rule with several lists must match each of them, save that group_ids
 * and tag_ids are one condition ("its group or tags"). starts_at to ends_at is half open. min_sale_minor is compared with amount_minor, in the sale's
 * currency: nothing is converted.
 */
export const ruleApplies = (rule: Rule, sale: SaleContext): boolean => unmetBy(rule, sale) === undefined;

/** The conditions of a rule, in the order in which they are checked. */
const conditions = {
  status: ({ status }) => status === 'active',
  min_sale_minor: ({ min_sale_minor }, { amount_minor }) => min_sale_minor === null || amount_minor >= min_sale_minor,
  applies_to: ({ applies_to }, { is_first_sale }) => applies_to === 'all' || (applies_to === 'first') === is_first_sale,
  partner_ids: (rule, { partner_id }) => isAnyOr(rule.partner_ids, partner_id),
  link_ids: (rule, { link_id }) => isAnyOr(rule.link_ids, link_id),
  product_ids: (rule, { product_id }) => isAnyOr(rule.product_ids, product_id),
  group_or_tag_ids: namesGroupOrTag,
  window: isInWindow,
  max_payments: hasPaymentsLeft,
  duration_months: isWithinDuration,
} satisfies Record<string, (rule: Rule, sale: SaleContext) => boolean>;

export type Condition = keyof typeof conditions;
export const condition_names = Object.keys(conditions) as Condition[];

/** Returns the first condition of the rule that does not hold; undefined where the rule applies. */
export const unmetBy = (rule: Rule, sale: SaleContext): Condition | undefined =>
  condition_names.find((name) => !conditions[name](rule, sale));

function isAnyOr(ids: readonly string[], id: string | null): boolean {
  return ids.length === 0 || (id !== null && ids.includes(id));
}

function namesGroupOrTag({ group_ids, tag_ids }: Rule, sale: SaleContext): boolean {
  if (group_ids.length === 0 && tag_ids.length === 0) return true;
  if (sale.group_id !== null && group_ids.includes(sale.group_id)) return true;
  return sale.tag_ids.some((id) => tag_ids.includes(id));
}

function isInWindow({ starts_at, ends_at }: Rule, { occurred_at }: SaleContext): boolean {
  const at = instant(occurred_at);
  return (starts_at === null || instant(starts_at) <= at) && (ends_at === null || at < instant(ends_at));
}

function hasPaymentsLeft({ id, max_payments }: Rule, { payments_by_rule }: SaleContext): boolean {
  return max_payments === null || (payments_by_rule[id] ?? 0) < max_payments;
}

/** Half open: after 12 months, the sale on the day a year after the customer's first one earns nothing any more. */
function isWithinDuration({ duration_months }: Rule, { occurred_at, first_sale_at }: SaleContext): boolean {
  if (duration_months === null) return true;
  return instant(occurred_at) < addMonths(first_sale_at ?? occurred_at, duration_months);
}

/** Negative when `a` is chosen before `b`. Both apply to the sale, so a list that is not empty names it. */
function compareRules(a: Rule, b: Rule): number {
  return (
    ruleClass(a) - ruleClass(b) ||
    b.priority - a.priority ||
    instant(a.created_at) - instant(b.created_at) ||
    (a.id < b.id ? -1 : 1)
  );
}

function ruleClass(rule: Rule): number {
  if (rule.partner_ids.length > 0) return 1;
  if (rule.link_ids.length > 0) return 2;
  if (rule.group_ids.length > 0 || rule.tag_ids.length > 0) return 3;
  return 4;
}

/** The tier with the highest `from` that the month has reached before this sale; below the lowest, the rule's own. */
function rateValueAt({ tiers, tier_metric, rate_value }: Rule, sale: SaleContext): number {
  if (tier_metric === null) return rate_value;
  const reached = tier_metric === 'sales_count' ? sale.month_sales_count : sale.month_revenue_minor;
  let best: Tier | null = null;
  for (const tier of tiers) {
    if (tier.from <= reached && (best === null || tier.from > best.from)) best = tier;
  }
  return best === null ? rate_value : best.rate_value;
}

/** Calendar months later in UTC, in ms; a day that the month lacks is its last: January 31 and one month is February 28. */
function addMonths(at: string, months: number): number {
  const date = new Date(instant(at));
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + months);
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime();
}

function instant(at: string): number {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) throw new RangeError(`${at} is not an ISO 8601 timestamp`);
  return ms;
}
