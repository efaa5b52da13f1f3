import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../core/values/fields.ts';
import { minorNotNegative } from '../core/values/money.ts';
import { commissions } from './commissions/commission.ts';
import { baseLeft } from './commissions/remaining_commission.ts';
import { type Condition, condition_names } from './commissions/rule_choice.ts';
import { programs } from './programs/program.ts';
import type { Candidates, Decision } from './sales/decision.ts';
import { type Sale, sales } from './sales/sale.ts';

const credit_reasons = {
  partner_id: 'The sale named this partner with partner_id, which takes precedence over all else.',
  coupon: "The sale used a coupon of this partner, and it is the customer's first sale.",
  customer: "The customer is this partner's.",
  click: 'The visitor came by a click of this partner, and no customer was known.',
  correction: 'A correction of the sale named this partner.',
} as const;

const no_credit_reasons = {
  partner_id_sent: 'The sale named a partner with partner_id, which takes precedence over all else.',
  not_first_sale: "A coupon counts on a customer's first sale only.",
  coupon_without_partner:
    'No coupon with this external_id was active at the time of the sale, its partner cannot earn, or the program was paused when the sale was recorded.',
  coupon_used: 'The coupon of the sale takes precedence on the first sale.',
  partner_deleted: 'The partner was deleted.',
  customer_known: 'A click credits nobody where the customer is known.',
  click_without_credit: 'The click earned no credit, or its attribution window has ended.',
  own_purchase: "It is the partner's own purchase, and the program blocks self-referrals.",
  corrected: 'A correction of the sale named another partner.',
} as const;
type NoCredit = keyof typeof no_credit_reasons;

const no_commission_reasons = {
  no_partner_attributed: 'Nobody is credited with the sale: see the candidates.',
  own_purchase: "It is the partner's own purchase, and the program blocks self-referrals.",
  partner_not_active: 'The partner was not active.',
  no_commission_from_rules: 'No rule applied, or its amount came to 0.',
  fixed_rate_currency_mismatch:
    "The rule pays a fixed amount in the program's currency, and the sale is in another one. Amounts are not converted.",
} as const;
type NoCommission = keyof typeof no_commission_reasons;

const condition_texts: Record<Condition, string> = {
  status: 'The rule is switched off.',
  min_sale_minor: 'The amount is below min_sale_minor of the rule.',
  applies_to: 'The rule applies to first sales only, or to renewals only, and the sale is the other.',
  partner_ids: 'The rule names other partners.',
  link_ids: 'The rule names other links than the one that the customer came by.',
  product_ids: 'The rule names other products.',
  group_or_tag_ids: 'The partner is in no group and has no tag that the rule names.',
  window: 'The sale was not between starts_at and ends_at of the rule.',
  max_payments: 'The rule has paid for as many sales of the customer as max_payments says.',
  duration_months: "The duration_months of the rule since the customer's first sale are over.",
};

const credited_by = ['partner_id', 'coupon', 'customer', 'click'] as const;
const part = id('part').nullable();

const SaleExplanation = z
  .object({
    object: objectName('sale_explanation'),
    sale_id: id('sale'),
    partner_id: part.describe('The partner who is credited. Null: none.'),
    credited_by: z
      .enum([...credited_by, 'correction'])
      .nullable()
      .describe(
        'By what the partner is credited. `correction`: a request changed the partner of the sale. Null: nobody is.',
      ),
    candidates: z
      .array(
        z.object({
          by: z.enum(credited_by).describe('What of the sale, or of its customer, stands for the partner.'),
          partner_id: part.describe('The partner who could have been credited. Null: none is known by it.'),
          external_coupon_id: text
            .nullable()
            .describe('The `coupon_external_id` of the sale. Null unless `by` is `coupon`.'),
          click_id: id('clk').nullable().describe('The click of the sale. Null unless `by` is `click`.'),
          referral_id: id('ref')
            .nullable()
            .describe('The referral that the click made or renewed. Null: none, or `by` is not `click`.'),
          credited: z.boolean().describe('True for the partner who is credited.'),
          reason: z
            .enum(['credited', ...(Object.keys(no_credit_reasons) as [NoCredit, ...NoCredit[]])])
            .describe('Why the partner is credited, or the first reason why not. `message` says it in words.'),
          message: z.string().describe('The reason in words.'),
        }),
      )
      .describe('Who was considered, in the order of precedence.'),
    is_first_sale: sales.record.shape.is_first_sale,
    first_sale_at: timestamp
      .nullable()
      .describe('When the customer first paid. Null: by this sale, or nobody is credited.'),
    month_before: z
      .object({
        sales_count: z.int().describe('The sales of the partner in the calendar month (UTC) before this one.'),
        revenue_minor: z.int().describe('Their revenue in the currency of the sale.'),
      })
      .nullable()
      .describe('What decides the tier. Null unless the rule that pays has tiers.'),
    rules: z
      .array(
        z.object({
          rule_id: id('flw'),
          name: text.describe('The name that the rule has now.'),
          outcome: z
            .enum(['chosen', 'outranked', 'does_not_apply'])
            .describe(
              '`chosen`: it decides. `outranked`: it applies, and another rule or the rate of the link comes first.',
            ),
          condition: z
            .enum(condition_names as [Condition, ...Condition[]])
            .nullable()
            .describe('The first condition that does not hold. Null unless the outcome is `does_not_apply`.'),
          message: z.string().describe('The outcome in words.'),
        }),
      )
      .describe(
        'The rules that were active when the sale was decided, 51 at most. Empty if nobody is credited or the partner is not active, and after a correction for which none was asked: the partner is paid by the rate of before, or it is their own purchase.',
      ),
    link_rate: z
      .boolean()
      .describe(
        'Whether the link that the customer came by sets the rate (`rate_override`): it comes before all rules.',
      ),
    no_commission_reason: z
      .enum(Object.keys(no_commission_reasons) as [NoCommission, ...NoCommission[]])
      .nullable()
      .describe('Why the sale earned no commission when it was decided. Null: it earned one.'),
    no_commission_message: text.nullable().describe('The reason in words. Null: it earned a commission.'),
    base: z
      .object({
        ...sales.record.pick({ amount_minor: true, tax_minor: true, shipping_minor: true, fee_minor: true }).shape,
        ...sales.record.pick({ discount_minor: true, net_amount_minor: true, refunded_minor: true, currency: true })
          .shape,
        of: z
          .enum(['amount', 'net_amount'])
          .describe('The amount that the rate applies to, by the settings of the program.'),
        base_minor: minorNotNegative.describe('That amount, without what is refunded of it in proportion.'),
      })
      .describe('What the rate applies to.'),
    commissions: z
      .array(commissions.schema)
      .describe('The commissions of the sale, oldest first, also those that do not count.'),
  })
  .meta({ id: 'SaleExplanation', description: 'Why a sale is credited and paid as it is.' });

export const explainSaleOperation: Operation = operation({
  name: 'sales.explain',
  title: 'Explain a sale',
  method: 'GET',
  path: '/v1/sales/{id}/explanation',
  scope: 'sales:read',
  further_scopes: ['commissions:read', 'rules:read'],
  summary: 'Explains why a sale is credited and paid as it is.',
  doc: 'Shows who was considered and why they are credited or not, each active rule and why it pays or not, what the rate applies to, and each commission with when it matures and why it is on hold. What is shown was decided when the sale was recorded, or when it was last decided again: when a correction gives it to another partner, or an earlier sale of the customer comes late.',
  params: idParams,
  reply: SaleExplanation,
  async run({ tx, params }) {
    const sale = await sales.get(tx, params.id);
    const { decision, own_of } = await tx.one<{ decision: Decision | null; own_of: string | null }>(sql`
      select t.decision, t.self_referral_partner_id as own_of from program.sale t where ${tenant(tx)} and t.id = ${sale.id}`);
    const earned = await tx.all<z.infer<typeof commissions.record> & { base_is_net: boolean | null }>(sql`
      select ${commissions.columns}, t.base_is_net from ${commissions.from}
      where ${tenant(tx)} and t.sale_id = ${sale.id} and ${commissions.alive} order by t.id`);
    const program = await programs.get(tx, sale.program_id);
    const isNet = earned.find(({ kind }) => kind === 'sale')?.base_is_net ?? program.commission_on_net_revenue;
    const { amount_minor, refunded_minor } = sale;
    const base_minor = isNet ? sale.net_amount_minor : amount_minor;
    const facts = decision?.facts;
    const reason = noCommissionReason(sale, decision, own_of);
    return {
      object: 'sale_explanation' as const,
      sale_id: sale.id,
      partner_id: sale.partner_id,
      credited_by: sale.partner_id === null ? null : (decision?.by ?? null),
      candidates: candidatesOf(sale, decision, own_of),
      is_first_sale: sale.is_first_sale,
      first_sale_at: facts?.first_sale_at ?? null,
      month_before: facts?.month ?? null,
      rules: await rulesOf(tx, decision),
      link_rate: decision?.by_link ?? false,
      no_commission_reason: reason,
      no_commission_message: reason && no_commission_reasons[reason],
      base: {
        ...{ amount_minor, refunded_minor, net_amount_minor: sale.net_amount_minor, currency: sale.currency },
        ...{ tax_minor: sale.tax_minor, shipping_minor: sale.shipping_minor, fee_minor: sale.fee_minor },
        ...{ discount_minor: sale.discount_minor, of: isNet ? ('net_amount' as const) : ('amount' as const) },
        base_minor: baseLeft({ base_minor, amount_minor, refunded_minor }),
      },
      commissions: earned.map(({ base_is_net: _, ...commission }) => commission),
    };
  },
});

function noCommissionReason(sale: Sale, decision: Decision | null, own_of: string | null): NoCommission | null {
  if (sale.partner_id === null) return own_of === null ? 'no_partner_attributed' : 'own_purchase';
  if (own_of === sale.partner_id) return 'own_purchase';
  const outcome = decision?.outcome ?? null;
  return outcome === 'commission' ? null : outcome;
}

type By = (typeof credited_by)[number];

function candidatesOf(sale: Sale, decision: Decision | null, own_of: string | null) {
  if (!decision) return [];
  const { candidates, by: credited } = decision;
  return credited_by
    .filter((by) => candidates[by] !== undefined)
    .map((by) => {
      const partner_id = partnerOf(candidates, by);
      const isCredited =
        partner_id !== null && partner_id === sale.partner_id && (credited === by || credited === 'correction');
      const reason = isCredited ? ('credited' as const) : reasonOf(decision, by, { partner_id, own_of, sale });
      return {
        ...{ by, partner_id, credited: isCredited, reason },
        external_coupon_id: by === 'coupon' ? (candidates.coupon?.external_id ?? null) : null,
        click_id: by === 'click' ? (candidates.click?.click_id ?? null) : null,
        referral_id: by === 'click' ? (candidates.click?.referral_id ?? null) : null,
        message:
          reason === 'credited' ? credit_reasons[credited === 'correction' ? credited : by] : no_credit_reasons[reason],
      };
    });
}

function partnerOf(candidates: Candidates, by: By): string | null {
  const candidate = candidates[by];
  return typeof candidate === 'object' ? candidate.partner_id : (candidate ?? null);
}

/** Returns why a candidate is not credited: the first reason in the order of precedence. */
function reasonOf(
  { candidates, by: credited }: Decision,
  by: By,
  { partner_id, own_of, sale }: { partner_id: string | null; own_of: string | null; sale: Sale },
): NoCredit {
  if (credited === 'correction') return 'corrected';
  if (partner_id !== null && partner_id === own_of) return 'own_purchase';
  if (by === 'coupon' && partner_id === null) return 'coupon_without_partner';
  if (candidates.partner_id !== undefined) return 'partner_id_sent';
  if (by === 'coupon') return 'not_first_sale';
  if (credited === 'coupon' || (sale.is_first_sale && candidates.coupon?.partner_id)) return 'coupon_used';
  if (by === 'customer') return 'partner_deleted';
  return candidates.customer === undefined ? 'click_without_credit' : 'customer_known';
}

async function rulesOf(tx: Tx, decision: Decision | null) {
  if (!decision) return [];
  const { rule_id, unmet } = decision;
  const ids = [...(rule_id === null ? [] : [rule_id]), ...Object.keys(unmet)];
  const named = await tx.all<{ id: string; name: string }>(
    sql`select t.id, t.name from program.rule t where ${tenant(tx)} and t.id = any(${ids})`,
  );
  const names = new Map(named.map(({ id, name }) => [id, name]));
  return ids.map((id) => ({ rule_id: id, name: names.get(id) ?? '', ...outcomeOf(id === rule_id, unmet[id] ?? '') }));
}

function outcomeOf(pays: boolean, condition: string) {
  if (pays)
    return { outcome: 'chosen' as const, condition: null, message: 'The rule is the first of those that apply.' };
  if (condition === '')
    return {
      outcome: 'outranked' as const,
      condition: null,
      message: 'The rule applies, and another rule or the rate of the link comes first.',
    };
  const unmet = condition as Condition;
  return { outcome: 'does_not_apply' as const, condition: unmet, message: condition_texts[unmet] };
}
