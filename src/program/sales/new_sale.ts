import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { externalId, id, metadata, pastTimestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { currency, minorNotNegative } from '../../core/values/money.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { identity } from '../customers/customer.ts';
import { program_id } from '../events/fields.ts';
import type { Visited } from './came_by.ts';
import type { Credit } from './credit.ts';
import type { Decision } from './decision.ts';
import { chargesOf, knownCharge } from './known_charge.ts';
import { type AmountParts, amount_fields, netAmount, partBeyondAmount } from './net_amount.ts';
import type { CustomerPlace } from './place.ts';
import { type Sale, sales } from './sale.ts';

/** A sale as callers send it. */
export const NewSale = z
  .strictObject({
    program_id,
    amount_minor: minorNotNegative,
    currency,
    external_charge_id: externalId.describe(
      "The processor's id of the charge. Unique in the program: a repeated id answers 409 with the recorded sale under `existing`.",
    ),
    customer_id: id('cus')
      .optional()
      .describe('The customer who paid. With an `external_customer_id` too, both must name the same customer.'),
    external_customer_id: externalId
      .optional()
      .describe(
        "The processor's id of the customer who paid. If no customer has it, the customer is recorded with the sale, provided that a partner is credited.",
      ),
    click_id: id('clk')
      .optional()
      .describe(
        'The click that brought the customer. A customer who is not known is recorded with the sale; one who is known stays with their partner, whoever the click belongs to. If the click earns no credit, for example because its window had ended by `occurred_at` or a robot made it, the sale is recorded with the warning `no_partner_attributed`.',
      ),
    coupon_external_id: externalId
      .optional()
      .describe("The `external_id` of the coupon that was used. Applies to a customer's first sale only."),
    partner_id: id('part')
      .optional()
      .describe('The partner to credit. Takes precedence over the coupon and over the partner of the customer.'),
    customer: z
      .strictObject(identity)
      .optional()
      .describe(
        'Details of the customer. A customer who is not known is recorded with them, if a partner is credited. For a customer who is known, they add what is missing, and an `email`, `identifier` or `external_customer_id` that differs from the recorded one answers 400. A click alone identifies nobody: with other details, the sale is that of another customer who came by the same click.',
      ),
    tax_minor: minorNotNegative
      .default(0)
      .describe(
        'The tax that `amount_minor` includes. Tax, shipping, fee and discount together cannot be more than `amount_minor`.',
      ),
    shipping_minor: minorNotNegative.default(0),
    fee_minor: minorNotNegative.default(0),
    discount_minor: minorNotNegative.default(0).describe('A discount that `amount_minor` still includes.'),
    external_subscription_id: externalId.optional(),
    product_id: externalId.optional(),
    occurred_at: pastTimestamp
      .optional()
      .describe(
        'When the customer was charged: between 2000-01-01 and a day from now. The default is the current time. A sale that is sent late is credited and paid as of this time, and later sales of the customer are corrected.',
      ),
    metadata: metadata.optional(),
  })
  .refine(
    ({ external_customer_id, customer }) =>
      external_customer_id === undefined ||
      customer?.external_customer_id === undefined ||
      customer.external_customer_id === external_customer_id,
    {
      path: ['customer', 'external_customer_id'],
      message: 'it differs from the external_customer_id of the sale: send it once',
    },
  );

export type NewSale = z.infer<typeof NewSale>;

/**
 * @param given the fields that the request sends, one of which the refusal names
 * @throws Problem invalid_parameter when the parts that an amount includes are more than the amount
 */
export function refuseNegativeNet(amounts: AmountParts, given: readonly (keyof AmountParts)[]): void {
  const beyond = given.length > 0 ? partBeyondAmount(amounts) : undefined;
  if (beyond === undefined) return;
  throw new Problem(
    'invalid_parameter',
    "The amount includes tax_minor, shipping_minor, fee_minor and discount_minor: together they cannot be more than 'amount_minor'. If you correct the amount, also send the parts that change.",
    { param: given.includes(beyond) ? beyond : (given[0] as string) },
  );
}

/** @throws Problem resource_already_exists: the charge is recorded, maybe by another id of it at the processor */
export async function refuseRepeatedCharge(tx: Tx, body: NewSale): Promise<void> {
  const { program_id, external_charge_id } = body;
  const existing = await sales.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.id = any(array(
      select s.id from program.sale s
      where s.organization_id = ${tx.organization_id} and s.program_id = ${program_id} and s.external_charge_id = ${external_charge_id}
        and s.deleted_at is null
      union all
      select o.object_id from ${chargesOf([body])} join ${knownCharge(tx)}
    ))`,
  );
  if (existing) throw repeatedCharge(external_charge_id, existing);
}

const repeatedCharge = (charge: string, existing: Sale): Problem =>
  alreadyExists(
    'external_charge_id',
    charge === existing.external_charge_id
      ? `The charge '${charge}' is already recorded in this program. Its commission is unchanged.`
      : `The charge '${charge}' is already recorded in this program, by its id '${existing.external_charge_id}'. Its commission is unchanged.`,
    existing,
  );

/** The columns of a new sale. */
export type SaleDraft = ReturnType<typeof draftOf> & { decision?: Decision };

/** @param came_by what the customer came by, where that is the partner's */
export function draftOf(
  tx: Tx,
  body: NewSale,
  {
    attribution,
    place,
    own_purchase,
  }: Pick<Credit, 'attribution' | 'own_purchase'> & { place: Pick<CustomerPlace, 'at' | 'is_first_sale'> },
  customer_id: string | null,
  { link_id, referral_id }: Visited,
) {
  const { program_id, external_charge_id, external_subscription_id, currency, metadata } = body;
  const { amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor } = body;
  const amounts = { amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor };
  refuseNegativeNet(amounts, amount_fields);
  return {
    ...amounts,
    ...{ id: newId('sale'), program_id, external_charge_id, external_subscription_id, currency, metadata },
    ...{ customer_id, link_id, referral_id, coupon_id: attribution?.coupon_id, is_first_sale: place.is_first_sale },
    partner_id: attribution?.partner.id ?? null,
    self_referral_partner_id: own_purchase?.partner_id,
    product_id: body.product_id ?? null,
    net_amount_minor: netAmount(amounts),
    occurred_at: place.at,
    created_at: tx.now,
  };
}

/** Records a sale. Where the charge was recorded meanwhile the transaction has lost a race: run again, it finds that. */
export const recordSale = async (tx: Tx, draft: SaleDraft): Promise<Sale> => (await sales.insert(tx, draft)) as Sale;
