import { z } from 'zod';
import { declareUnique } from '../../core/postgres/errors.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, storedMetadata, text, timestamp } from '../../core/values/fields.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { customers } from '../customers/customer.ts';
import { partners } from '../partners/partner.ts';
import { totalOf } from '../programs/tally.ts';
import { links } from '../tracking/link.ts';
import { referrals } from '../tracking/referral.ts';

declareUnique('refund', { refund_external_id_unique: 'external_refund_id' });

/** The record of a sale; what can be done with it is in record_sale.ts and change_sale.ts. */
export const sales = resource({
  object: 'sale',
  plural: 'sales',
  table: 'program.sale',
  unique: { sale_external_charge_unique: 'external_charge_id', sale_one_first_a_customer: null },
  total: totalOf('sale'),
  doc: 'A charge, and who earned by it.',
  soft_delete: true,
  relations: { partner: partners, customer: customers, link: links, referral: referrals },
  fields: {
    id: id('sale'),
    object: objectName('sale'),
    program_id: id('prg'),
    partner_id: id('part').nullable().describe('Null: nobody was known to have brought it.'),
    customer_id: id('cus').nullable().describe('Null: the sale named none.'),
    link_id: id('lnk').nullable().describe('The link that the customer came by, where its partner earned. Null: none.'),
    referral_id: id('ref')
      .nullable()
      .describe('The visit that the customer came by, where its partner earned. Null: none.'),
    coupon_id: id('cpn').nullable().describe('The coupon that brought this sale to the partner. Null: none.'),
    external_charge_id: text.describe("The processor's id of the charge: unique in the program."),
    external_subscription_id: text.nullable().describe("The processor's id of the subscription. Null: not said."),
    product_id: text.nullable().describe('Your id of what was sold; rules may go by it. Null: not said.'),
    amount_minor: minorNotNegative.describe('What the customer was charged, in minor units of the currency.'),
    tax_minor: minorNotNegative.describe('The tax that the amount includes, in minor units.'),
    shipping_minor: minorNotNegative.describe('The shipping that the amount includes, in minor units.'),
    fee_minor: minorNotNegative.describe("The processor's fee that the amount includes, in minor units."),
    discount_minor: minorNotNegative.describe('A discount that the amount still includes, in minor units.'),
    net_amount_minor: minorNotNegative.describe('The amount less tax, shipping, fee and discount, never below 0.'),
    refunded_minor: minorNotNegative.describe('What was refunded of the amount so far, in minor units.'),
    currency: storedCurrency,
    status: z
      .enum(['paid', 'partially_refunded', 'refunded'])
      .describe('What was refunded of it: nothing (`paid`), a part, or all.'),
    is_first_sale: z.boolean().describe("Whether it is the customer's first. True where there is no customer."),
    occurred_at: timestamp.describe('When the customer was charged.'),
    refunded_at: timestamp.nullable().describe('When it was last refunded. Null: never.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Sale = z.infer<typeof sales.record>;

/** A sale that a partner is credited with. */
export type AttributedSale = Sale & { partner_id: string };

export const isAttributed = (sale: Sale): sale is AttributedSale => sale.partner_id !== null;
