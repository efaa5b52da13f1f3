import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { type Operation, operation, readOperations } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { id, metadata, text, timestampInput } from '../core/values/fields.ts';
import { newId } from '../core/values/id.ts';
import { currency, minorNotNegative } from '../core/values/money.ts';
import { alreadyExists, type Problem } from '../core/values/problem.ts';
import { saleChangeOperations } from './change_sale.ts';
import { commissions, createSaleCommission } from './commissions/commission.ts';
import { netAmount } from './commissions/commission_rate.ts';
import { earnedBy } from './commissions/earn.ts';
import { type Customer, customers, identity } from './customers/customer.ts';
import { enrolCustomer } from './customers/enrolment.ts';
import { event } from './events/event.ts';
import { assessLater } from './programs/assess_later.ts';
import { type Program, programs } from './programs/program.ts';
import { type Claim, type Credit, cameBy, creditSale } from './sales/credit.ts';
import { type Sale, sales } from './sales/sale.ts';
import { referrals } from './tracking/referral.ts';

const warning_messages = {
  no_partner_attributed:
    'The sale names nobody whom a partner brought, a click that credits nobody, or a customer whose partner was deleted. Send partner_id to attribute it: here, or in a correction of the sale.',
  no_commission_from_rules: 'No active rule pays for this sale. Check the rules, and that the partner is active.',
  fixed_rate_currency_mismatch:
    'A fixed-amount rule met a sale in a different currency; no conversion is applied. Use a percentage rate.',
} as const;

type WarningCode = keyof typeof warning_messages;

const Warning = z.object({
  code: z
    .enum(Object.keys(warning_messages) as [WarningCode, ...WarningCode[]])
    .describe(
      '`no_partner_attributed`: the sale names nobody whom a partner brought. `no_commission_from_rules`: no active rule pays for it. `fixed_rate_currency_mismatch`: a fixed amount met a sale in another currency.',
    ),
  message: z.string().describe('The same in words, and what would be right.'),
});

const SaleOutcome = z
  .object({
    ...sales.record.shape,
    activity_outcome: z
      .enum(['commission_created', 'sale_recorded'])
      .describe('`sale_recorded`: accepted, and nobody was paid.'),
    warnings: z.array(Warning).optional().describe('Why nobody was paid; only when no money followed.'),
    commissions: z.array(commissions.schema).describe('What was earned: one, or none.'),
  })
  .meta({ id: 'SaleOutcome', description: 'The sale, and what followed from it.' });

const claims = ['customer_id', 'external_customer_id', 'click_id', 'coupon_external_id', 'partner_id'] as const;

const NewSale = z
  .strictObject({
    program_id: id('prg'),
    amount_minor: minorNotNegative,
    currency,
    external_charge_id: text
      .min(1)
      .max(255)
      .describe('Unique in the program: a second one answers 409 with the sale under `existing`.'),
    customer_id: id('cus').optional().describe('Who paid.'),
    external_customer_id: text
      .min(1)
      .max(255)
      .optional()
      .describe("The processor's id of the customer, in place of `customer_id`."),
    click_id: id('clk')
      .optional()
      .describe(
        'The click that brought the customer, who is recorded on the way. One that credits nobody (expired, a robot) leaves the sale recorded with the warning `no_partner_attributed`.',
      ),
    coupon_external_id: text
      .min(1)
      .max(255)
      .optional()
      .describe("The `external_id` of the coupon that was used. It counts on a customer's first sale."),
    partner_id: id('part').optional().describe('Who earns, whoever brought the customer.'),
    customer: z
      .strictObject(identity)
      .optional()
      .describe(
        'Who paid, where there is no id yet: found by `external_customer_id`, else recorded on the way if a partner earns.',
      ),
    tax_minor: minorNotNegative.default(0),
    shipping_minor: minorNotNegative.default(0),
    fee_minor: minorNotNegative.default(0),
    discount_minor: minorNotNegative.default(0).describe('A discount that amount_minor still includes.'),
    external_subscription_id: text.min(1).max(255).optional(),
    product_id: text.min(1).max(255).optional(),
    occurred_at: timestampInput.optional().describe('Now when left out.'),
    metadata: metadata.optional(),
  })
  .superRefine((body, context) => {
    const named = claims.filter((claim) => body[claim] !== undefined);
    if (named.length > 1)
      context.addIssue({ code: 'custom', path: [named[1] as string], message: `give one of ${claims.join(', ')}` });
  });

type NewSale = z.infer<typeof NewSale>;

export const saleOperations: Operation[] = [
  ...readOperations({
    resource: sales,
    within: programs,
    by: ['status', 'currency', 'partner_id', 'customer_id', 'link_id', 'referral_id', 'coupon_id'],
    filters: {
      external_charge_id: { schema: text.optional(), where: (value: string) => sql`t.external_charge_id = ${value}` },
    },
  }),
  operation({
    name: 'sales.create',
    method: 'POST',
    path: '/v1/sales',
    scope: 'sales:write',
    summary: 'Records a sale and computes its commission.',
    doc: `Name the customer, the click, the coupon or the partner; nothing when nobody is known. Who earns: the explicit partner; else on the customer's first sale the coupon's; else the customer's partner; else the click's. A sale that pays nobody is recorded too, and says why in \`warnings\`.`,
    body: NewSale,
    reply: SaleOutcome,
    status: 201,
    errors: ['resource_already_exists', 'self_referral'],
    async run({ tx, body }) {
      const [of] = await Promise.all([
        programs.get(tx, body.program_id, { param: 'program_id' }),
        refuseRepeatedCharge(tx, body),
      ]);
      const credit = await creditSale(tx, of, body as Claim);
      const { partner, customer, first_sale_at } = credit;
      const made = await recordSale(tx, body, credit);
      const new_payer = made.is_first_sale ? customer : undefined;
      if (new_payer) await activate(tx, made, new_payer);
      if (!partner) return outcomeOf(made, [], 'no_partner_attributed');
      tx.emit(event('sale.created', made, { partner_id: partner.id }));
      if (made.is_first_sale) assessLater(tx, 'sale', made.id);
      const earned = await earnedBy(tx, of, made, { partner, customer, first_sale_at });
      const commissions = earned.outcome === 'commission' ? [await createSaleCommission(tx, of, made, earned)] : [];
      if (new_payer) await convert(tx, of, made, new_payer);
      return outcomeOf(made, commissions, earned.outcome === 'none' ? earned.warning : undefined);
    },
  }),
  ...saleChangeOperations,
];

function outcomeOf(
  made: Sale,
  commissions: z.infer<typeof SaleOutcome>['commissions'],
  warning?: WarningCode,
): z.infer<typeof SaleOutcome> {
  if (!warning) return { ...made, activity_outcome: 'commission_created', commissions };
  return {
    ...made,
    activity_outcome: 'sale_recorded',
    warnings: [{ code: warning, message: warning_messages[warning] }],
    commissions,
  };
}

/** @throws Problem resource_already_exists: the charge was recorded */
async function refuseRepeatedCharge(tx: Tx, body: NewSale): Promise<void> {
  const existing = await saleOfCharge(tx, body);
  if (existing) throw repeatedCharge(body.external_charge_id, existing);
}

const saleOfCharge = (tx: Tx, { program_id, external_charge_id }: NewSale): Promise<Sale | undefined> =>
  sales.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and t.external_charge_id = ${external_charge_id}`);

const repeatedCharge = (charge: string, existing: Sale | undefined): Problem =>
  alreadyExists(
    'external_charge_id',
    `The charge '${charge}' is recorded in this program. It earned what it earned.`,
    existing,
  );

async function recordSale(
  tx: Tx,
  body: NewSale,
  { partner, customer, coupon_id, is_first_sale }: Credit,
): Promise<Sale> {
  const { program_id, amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor, external_charge_id } = body;
  const amounts = { amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor };
  const made = await sales.insert(
    tx,
    {
      ...amounts,
      id: newId('sale'),
      program_id,
      external_charge_id,
      partner_id: partner?.id,
      customer_id: customer?.id,
      ...(partner ? await cameBy(tx, customer, partner.id) : {}),
      coupon_id,
      external_subscription_id: body.external_subscription_id,
      product_id: body.product_id,
      currency: body.currency,
      net_amount_minor: netAmount(amounts),
      is_first_sale,
      occurred_at: body.occurred_at ?? tx.now,
      metadata: body.metadata,
    },
    sql`on conflict (organization_id, program_id, external_charge_id) where deleted_at is null do nothing`,
  );
  if (!made) throw repeatedCharge(external_charge_id, await saleOfCharge(tx, body));
  return made;
}

/** The first payment: the customer is active. */
async function activate(tx: Tx, made: Sale, customer: Customer): Promise<void> {
  const status = customer.status === 'lead' || customer.status === 'trial' ? 'active' : undefined;
  const external_subscription_id = customer.external_subscription_id ?? made.external_subscription_id;
  await customers.update(tx, customer.id, { status, external_subscription_id, converted_at: made.occurred_at });
}

/** The first payment that a partner brought: the referral converts, once. */
async function convert(tx: Tx, of: Program, made: Sale, customer: Customer): Promise<void> {
  await convertReferral(tx, made, customer);
  await enrolCustomer(tx, of, customer);
}

async function convertReferral(tx: Tx, made: Sale, { id: customer_id, referral_id }: Customer): Promise<void> {
  if (referral_id === null) return;
  const [converted] = await tx.all<{ partner_id: string }>(sql`
    update program.referral t set status = 'converted', updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = ${referral_id} and ${referrals.alive} and t.status <> 'converted'
    returning t.partner_id`);
  if (!converted) return;
  tx.emit(event('referral.converted', made, { ...converted, referral_id, customer_id }));
}
