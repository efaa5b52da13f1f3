import { z } from 'zod';
import { id, objectName, storedMetadata, text, timestamp } from '../core/fields.ts';
import { minorNotNegative, storedCurrency } from '../core/money.ts';
import { resource } from '../core/resource.ts';
import { customer } from './customer.ts';
import { link } from './link.ts';
import { partner } from './partner.ts';
import { referral } from './referral.ts';

/** The record of a sale; what can be done with it is in sale.ts. */
export const sale = resource({
  object: 'sale',
  plural: 'sales',
  table: 'program.sale',
  doc: 'A charge, and who earned by it.',
  soft_delete: true,
  relations: { partner, customer, link, referral },
  fields: {
    id: id('sale'),
    object: objectName('sale'),
    program_id: id('prg'),
    partner_id: id('part').nullable().describe('Null: nobody was known to have brought it.'),
    customer_id: id('cus').nullable(),
    link_id: id('lnk').nullable(),
    referral_id: id('ref').nullable(),
    coupon_id: id('cpn').nullable(),
    external_charge_id: text.describe("The processor's id of the charge: unique in the program."),
    external_subscription_id: text.nullable(),
    product_id: text.nullable(),
    amount_minor: minorNotNegative,
    tax_minor: minorNotNegative,
    shipping_minor: minorNotNegative,
    fee_minor: minorNotNegative,
    discount_minor: minorNotNegative,
    net_amount_minor: minorNotNegative.describe('The amount less tax, shipping, fee and discount, never below 0.'),
    refunded_minor: minorNotNegative,
    currency: storedCurrency,
    status: z.enum(['paid', 'partially_refunded', 'refunded']),
    is_first_sale: z.boolean(),
    occurred_at: timestamp,
    refunded_at: timestamp.nullable(),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Sale = z.infer<typeof sale.record>;
