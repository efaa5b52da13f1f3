import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Tx, together } from '../core/postgres/transaction.ts';
import type { ListOptions } from '../core/resource/list_query.ts';
import { type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { DetailWarning, details } from '../core/values/detail.ts';
import { externalId, knownExternalId } from '../core/values/fields.ts';
import { commissions, createSaleCommission } from './commissions/commission.ts';
import { earnedBy, termsOfOne } from './commissions/earn.ts';
import type { CommissionOutcome } from './commissions/rule_choice.ts';
import { type Customer, customers, identityDetails } from './customers/customer.ts';
import { enrolCustomer } from './customers/enrolment.ts';
import { event } from './events/event.ts';
import { assessLater } from './programs/assess_later.ts';
import { type Program, programs } from './programs/program.ts';
import { nothing_visited, visitedBy } from './sales/came_by.ts';
import { type Credit, creditSale, likelyPartner } from './sales/credit.ts';
import { type Found, findNamed, namedCustomer } from './sales/named_customer.ts';
import { draftOf, NewSale, recordSale, refuseRepeatedCharge, type SaleDraft } from './sales/new_sale.ts';
import { flagOwnPurchase } from './sales/own_purchase.ts';
import { type Sale, sales } from './sales/sale.ts';
import { saleReportFilters } from './sales/sale_filter.ts';
import { referrals } from './tracking/referral.ts';

const warning_messages = {
  no_partner_attributed:
    "No partner is credited with this sale: it names no customer, click or coupon of a partner, its click earns no credit, its coupon is of a paused program, its partner was deleted, or it is the partner's own purchase and the program blocks self-referrals. To credit a partner, send partner_id with the sale or in a correction of it.",
  no_commission_from_rules:
    'No active rule pays for this sale. Check that a rule applies, that the partner is active, and that the amount is above 0.',
  fixed_rate_currency_mismatch:
    "The rule pays a fixed amount in the program's currency, and the sale is in another one; amounts are not converted. Use a percentage rate.",
} as const;

type WarningCode = keyof typeof warning_messages;

const Warning = z.object({
  code: z
    .enum(Object.keys(warning_messages) as [WarningCode, ...WarningCode[]])
    .describe(
      '`no_partner_attributed`: no partner is credited with the sale. `no_commission_from_rules`: no active rule pays for it. `fixed_rate_currency_mismatch`: the rule pays a fixed amount in another currency than that of the sale.',
    ),
  message: z.string().describe('The warning in words, and what to do.'),
});

export type SaleOutcome = z.infer<typeof SaleOutcome>;
const SaleOutcome = z
  .object({
    ...sales.record.shape,
    activity_outcome: z
      .enum(['commission_created', 'sale_recorded'])
      .describe(
        '`commission_created`: the sale earned a commission. `sale_recorded`: the sale was recorded without a commission.',
      ),
    warnings: z
      .array(z.union([Warning, DetailWarning]))
      .optional()
      .describe(
        'Why there is no commission, and which details of the sale were changed or left out. Present only then.',
      ),
    commissions: z.array(commissions.schema).describe('The commission that the sale earned: one, or none.'),
  })
  .meta({ id: 'SaleOutcome', description: 'The sale, and the commission that it earned.' });

export const saleList: ListOptions = {
  resource: sales,
  within: programs,
  by: ['status', 'currency', 'referral_id'],
  filters: {
    external_charge_id: {
      schema: knownExternalId.optional(),
      where: (value: string) => sql`t.external_charge_id = ${value}`,
      is_of_few: true,
    },
    ...saleReportFilters,
  },
};

export const recordSaleOperation: Operation = operation({
  name: 'sales.create',
  title: 'Record a sale',
  method: 'POST',
  path: '/v1/sales',
  scope: 'sales:write',
  summary: 'Records a sale and computes its commission.',
  doc: `Send all that you know: the customer, the click, the coupon, the partner, or nothing. The sale is credited to the given partner; else, on the customer's first sale, to the partner of the coupon; else to the partner of the customer; else to the partner of the click. If the program blocks self-referrals, a partner's own purchase is recorded, credits nobody, and raises a risk flag. A sale without a commission is recorded too, and \`warnings\` says why there is none.`,
  body: NewSale,
  details: {
    'customer.email': identityDetails.email,
    'customer.name': identityDetails.name,
    metadata: details.metadata,
    external_subscription_id: {
      schema: externalId,
      mend: () => undefined,
      fault: 'is no id of at most 255 characters',
    },
  },
  reply: SaleOutcome,
  status: 201,
  errors: ['resource_already_exists'],
  ahead: ({ tx, body }) =>
    together([
      programs.get(tx, body.program_id, { param: 'program_id' }),
      refuseRepeatedCharge(tx, body),
      findNamed(tx, body),
    ]),
  async run({ tx, body, ahead: [program, , found] }) {
    const { credit, earned, draft } = await judge(tx, program, body, found);
    const { partner, customer, is_new_customer, own_purchase } = credit;
    const [sale, commission] = await together([
      recordSale(tx, draft),
      earned?.outcome === 'commission' ? createSaleCommission(tx, program, draft, earned) : undefined,
    ]);
    const new_payer = sale.is_first_sale ? customer : undefined;
    if (new_payer && !is_new_customer) await activate(tx, sale, new_payer);
    if (own_purchase) await flagOwnPurchase(tx, sale, own_purchase);
    if (!partner || !earned) return outcomeOf(sale, [], 'no_partner_attributed');
    tx.emit(event('sale.created', sale, { partner_id: partner.id }));
    if (sale.is_first_sale) assessLater(tx, 'sale', sale.id);
    if (commission) tx.emit(event('commission.created', commission));
    if (new_payer) await convert(tx, program, sale, new_payer);
    return outcomeOf(sale, commission ? [commission] : [], earned.outcome === 'none' ? earned.warning : undefined);
  },
});

/** Who is credited with a sale, what they earn by it, and what it is recorded with. */
async function judge(
  tx: Tx,
  program: Program,
  body: NewSale,
  found: Found,
): Promise<{ credit: Credit; earned?: CommissionOutcome; draft: SaleDraft }> {
  const named = await namedCustomer(tx, program, body, found);
  const likely = likelyPartner(body, named);
  const termsOf = (partner_id: string, customer: Customer | undefined) =>
    termsOfOne(tx, { program_id: program.id, partner_id, customer_id: customer?.id, came_by: visitedBy(customer) });
  const [credit, likely_terms] = await together([
    creditSale(tx, program, body, named),
    likely === undefined ? undefined : termsOf(likely, named.customer),
  ]);
  const { partner, customer } = credit;
  if (!partner) return { credit, draft: draftOf(tx, body, credit, nothing_visited) };
  const is_likely = partner.id === likely && customer?.id === named.customer?.id;
  const terms = is_likely && likely_terms ? likely_terms : await termsOf(partner.id, customer);
  const draft = draftOf(tx, body, credit, terms.came_by);
  return { credit, earned: await earnedBy(tx, program, draft, { ...credit, partner }, terms), draft };
}

export function outcomeOf(sale: Sale, commissions: SaleOutcome['commissions'], warning?: WarningCode): SaleOutcome {
  if (!warning) return { ...sale, activity_outcome: 'commission_created', commissions };
  return {
    ...sale,
    activity_outcome: 'sale_recorded',
    warnings: [{ code: warning, message: warning_messages[warning] }],
    commissions,
  };
}

/** The first payment of a customer who was known: the customer is active, as one who is recorded with it. */
async function activate(tx: Tx, sale: Sale, customer: Customer): Promise<void> {
  const status = customer.status === 'lead' || customer.status === 'trial' ? 'active' : undefined;
  const external_subscription_id = customer.external_subscription_id ?? sale.external_subscription_id;
  await customers.update(tx, customer.id, { status, external_subscription_id, converted_at: sale.occurred_at });
}

/** The first payment of a customer whose sale a partner is credited with: the referral converts, once. */
async function convert(tx: Tx, program: Program, sale: Sale, customer: Customer): Promise<void> {
  await convertReferral(tx, sale, customer);
  await enrolCustomer(tx, program, customer);
}

async function convertReferral(tx: Tx, sale: Sale, { id: customer_id, referral_id }: Customer): Promise<void> {
  if (referral_id === null) return;
  const [converted] = await tx.all<{ partner_id: string }>(sql`
    update program.referral t set status = 'converted', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${referral_id} and ${referrals.alive} and t.status <> 'converted'
    returning t.partner_id`);
  if (!converted) return;
  tx.emit(event('referral.converted', sale, { ...converted, referral_id, customer_id }));
}
