import sql, { empty, raw, type Sql } from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import type { Partner } from '../partners/partner.ts';
import { tagsOf } from '../partners/tag.ts';
import type { Program } from '../programs/program.ts';
import { type CameBy, cameBy, type Visited } from '../sales/came_by.ts';
import type { Decided, PlaceFacts } from '../sales/decision.ts';
import type { AmountParts } from '../sales/net_amount.ts';
import { isBefore, isSettled, type Place } from '../sales/place.ts';
import type { Sale } from '../sales/sale.ts';
import { commissionBase, type Rate } from './commission_rate.ts';
import { uncounted_statuses } from './commission_state.ts';
import { partnerMonth } from './partner_month.ts';
import { rules } from './rule.ts';
import {
  type Choice,
  type CommissionOutcome,
  chooseRule,
  commissionFor,
  type Rule,
  type SaleContext,
  unmetBy,
} from './rule_choice.ts';

/** The terms by which a partner is paid, besides the sale itself. */
export interface Terms {
  rules: (Rule & { payments: number })[];
  tag_ids: string[];
  came_by: CameBy;
  /** Reads the partner's month before a sale. Left out: as it is recorded. */
  month?: () => Promise<NonNullable<PlaceFacts['month']>>;
}

/** The partner who is credited with the sale, and the place of the sale among those of its customer. */
interface Credit {
  partner: Partner;
  /** The time of the customer's first payment: null when by this sale. */
  first_sale_at: string | null;
}

/** The commission of a sale, and what decided on it. */
export interface Earning {
  outcome: CommissionOutcome;
  decided: Decided;
  /** True if a rule of the partner has tiers: later sales of the month may be in another one. */
  has_tiers: boolean;
}

/** The place of a sale as of which payments are counted. */
export interface AsOf extends Place {
  /** The sale itself, whose own commissions are not counted. */
  sale_id?: string;
  /** True if the customer has sales after it, which are not counted unless they are settled. */
  has_later: boolean;
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
  | 'external_charge_id'
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
 * @param place of the one sale, whose payments are counted as of then. Left out for sales that come after all that their customers paid and got back.
 */
export async function termsOf(tx: Tx, many: Sold[], place?: AsOf): Promise<Terms[]> {
  const program_ids = unique(many.map(({ program_id }) => program_id));
  const partner_ids = unique(many.map(({ partner_id }) => partner_id));
  const customer_ids = unique(many.flatMap(({ customer_id }) => customer_id ?? []));
  const isApplied = sql`${rules.alive} and t.status = 'active' and (t.partner_ids = '{}' or t.partner_ids && ${partner_ids}::text[])`;
  const [active_rules, counted, tagged, came_by] = await together([
    tx.all<Rule & { program_id: string }>(sql`
      select ${rules.columns} from ${rules.from}
      where ${tenant(tx)} and t.program_id = any(${program_ids}) and ${isApplied}`),
    customer_ids.length === 0 ? [] : paymentsOf(tx, customer_ids, isApplied, place),
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

/** @param place see `termsOf` */
export const termsOfOne = async (tx: Tx, sold: Sold, place?: AsOf): Promise<Terms> =>
  (await termsOf(tx, [sold], place))[0] as Terms;

const unique = (values: string[]): string[] => [...new Set(values)];

/**
 * Counts the sales of each customer that each of these rules `t` pays for, if it pays for a limited number: one whose commission was clawed back
 * whole is none. Counts no further than that number, by an index.
 * @param place counts the sales before it, the settled ones, and those that were refunded after it
 */
function paymentsOf(
  tx: Tx,
  customer_ids: string[],
  isApplied: Sql,
  place: AsOf | undefined,
): Promise<{ customer_id: string; rule_id: string; payments: number }[]> {
  const isCounted = sql`c.deleted_at is null and c.status not in ${uncounted_statuses}`;
  const ofRule = sql`c.organization_id = t.organization_id and c.customer_id = u.id and c.rule_id = t.id
    and c.sale_id is distinct from ${place?.sale_id ?? null}`;
  const isPlaced = place?.has_later
    ? sql`and (${isSettled} or exists (
        select from program.sale s
        where s.organization_id = c.organization_id and s.id = c.sale_id and ${isBefore(place, raw('s'))}))`
    : empty;
  const refundedSince = place
    ? sql`+ (
        select count(*) from (
          select from program.sale s
          where s.organization_id = u.organization_id and s.customer_id = u.id and s.deleted_at is null and s.status = 'refunded'
            and s.refunded_at >= ${place.at}::timestamptz and ${isBefore(place, raw('s'))}
            and s.decision ->> 'rule_id' = t.id and s.decision ->> 'outcome' = 'commission'
            and coalesce((
              select sum(c.amount_minor) from program.commission c
              where c.organization_id = s.organization_id and c.sale_id = s.id and c.rule_id = t.id and ${isCounted}
            ), 0) <= 0
          limit t.max_payments
        ) as refunded_since
      )`
    : empty;
  return tx.all(sql`
    select u.id as customer_id, t.id as rule_id, (
      select count(*) from (
        select from program.commission c
        where ${ofRule} and ${isCounted} ${isPlaced}
        group by c.sale_id
        having sum(c.amount_minor) > 0
        limit t.max_payments
      ) as paid
    ) ${refundedSince} as payments
    from program.customer u
    join ${rules.from} on t.organization_id = u.organization_id and t.program_id = u.program_id
    where u.organization_id = ${tx.organization_id} and u.id = any(${customer_ids}) and t.max_payments is not null and ${isApplied}`);
}

/** Evaluates the rules, in the request's transaction, "because its answer says what followed". */
export async function earnedBy(
  tx: Tx,
  program: Program,
  sale: EarningSale,
  { partner, first_sale_at }: Credit,
  terms: Terms,
): Promise<Earning> {
  const facts = await factsOf(tx, program, sale, { partner, first_sale_at }, terms);
  const has_tiers = terms.rules.some(({ tiers }) => tiers.length > 0);
  const by_link = terms.came_by.rate_override !== null;
  if (partner.status !== 'active')
    return {
      outcome: { outcome: 'none', warning: 'no_commission_from_rules' },
      decided: { facts, rule_id: null, unmet: {}, by_link: false, outcome: 'partner_not_active' },
      has_tiers,
    };
  const context = contextOf(program, sale, partner, facts, terms);
  const outcome = exactly(() => commissionFor(terms.rules, context));
  const decided = {
    ...{ facts, ...reasonsOf(terms, context), by_link },
    outcome: outcome.outcome === 'commission' ? ('commission' as const) : outcome.warning,
  };
  return { outcome, decided, has_tiers };
}

/** Reads the facts that the place of a sale decides: the partner's month for tiers alone. */
export async function factsOf(
  tx: Tx,
  program: Program,
  sale: EarningSale,
  { partner, first_sale_at }: Credit,
  terms: Terms,
): Promise<PlaceFacts> {
  const limited = terms.rules.filter(({ max_payments }) => max_payments !== null);
  const payments = Object.fromEntries(limited.map(({ id, payments }) => [id, payments]));
  const facts: PlaceFacts = { is_first_sale: sale.is_first_sale, first_sale_at, payments };
  const rule_id = choiceBy(program, sale, partner, facts, terms)?.rule_id;
  const isTiered = terms.rules.some(({ id, tiers }) => id === rule_id && tiers.length > 0);
  if (!isTiered) return facts;
  const { sales_count, revenue_minor } = await (terms.month?.() ?? partnerMonth(tx, sale));
  return { ...facts, month: { sales_count, revenue_minor } };
}

/** Returns the rule that is chosen, and the rate of its tier, if the place of the sale had these facts. */
export function choiceBy(
  program: Program,
  sale: EarningSale,
  partner: Partner,
  facts: PlaceFacts,
  terms: Terms,
): Choice | null {
  return partner.status === 'active' ? chooseRule(terms.rules, contextOf(program, sale, partner, facts, terms)) : null;
}

/** Returns the reasons of the rules, if the place of the sale had these facts. */
export const reasonsBy = (
  program: Program,
  sale: EarningSale,
  partner: Partner,
  facts: PlaceFacts,
  terms: Terms,
): Reasons => reasonsOf(terms, contextOf(program, sale, partner, facts, terms));

type Reasons = Pick<Decided, 'rule_id' | 'unmet'>;

function reasonsOf({ rules }: Terms, context: SaleContext): Reasons {
  const rule_id = chooseRule(rules, context)?.rule_id ?? null;
  const others = rules.filter(({ id }) => id !== rule_id).slice(0, most_explained);
  return { rule_id, unmet: Object.fromEntries(others.map((rule) => [rule.id, unmetBy(rule, context) ?? ''])) };
}

/** The number of rules that a sale keeps its reasons of. */
const most_explained = 50;

/** Returns the facts that rules compare with. */
function contextOf(
  program: Program,
  sale: EarningSale,
  partner: Partner,
  { is_first_sale, first_sale_at, payments, month }: PlaceFacts,
  { tag_ids, came_by }: Terms,
): SaleContext {
  const { occurred_at, amount_minor, currency, product_id } = sale;
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
    payments_by_rule: payments,
    month_sales_count: month?.sales_count ?? 0,
    month_revenue_minor: month?.revenue_minor ?? 0,
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
