import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { id, objectName, storedMetadata, text, timestamp } from '../../core/values/fields.ts';
import { minorNotNegative, storedCurrency } from '../../core/values/money.ts';
import { type Customer, customers, lockCustomer } from '../customers/customer.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { links } from '../partners/link.ts';
import { partners } from '../partners/partner.ts';
import { totalOf } from '../programs/tally.ts';
import { referrals } from '../tracking/referral.ts';

/** The record of a sale; what can be done with it is in record_sale.ts, change_sale.ts and refund_sale.ts. */
export const sales = resource({
  object: 'sale',
  plural: 'sales',
  table: 'program.sale',
  unique: { sale_external_charge_unique: 'external_charge_id', sale_one_first_a_customer: null },
  total: totalOf('sale'),
  doc: 'A charge, and the partner who is credited with it.',
  soft_delete: true,
  relations: { partner: partners, customer: customers, link: links, referral: referrals },
  fields: {
    id: id('sale'),
    object: objectName('sale'),
    program_id,
    partner_id: id('part').nullable().describe('The partner who is credited. Null: none.'),
    customer_id: id('cus').nullable().describe('The customer who paid. Null: not known.'),
    link_id: id('lnk')
      .nullable()
      .describe('The link that the customer came by, if its partner is credited. Null: none.'),
    referral_id: id('ref')
      .nullable()
      .describe('The referral that the customer came by, if its partner is credited. Null: none.'),
    coupon_id: id('cpn').nullable().describe('The coupon by which the partner is credited. Null: none.'),
    external_charge_id: text.describe("The processor's id of the charge. Unique in the program."),
    external_subscription_id: text.nullable().describe("The processor's id of the subscription. Null: not given."),
    product_id: text.nullable().describe('Your id of the product, which rules can match. Null: not given.'),
    amount_minor: minorNotNegative.describe(
      'The amount that the customer was charged, in minor units of the currency.',
    ),
    tax_minor: minorNotNegative.describe('The tax that the amount includes, in minor units.'),
    shipping_minor: minorNotNegative.describe('The shipping that the amount includes, in minor units.'),
    fee_minor: minorNotNegative.describe("The processor's fee that the amount includes, in minor units."),
    discount_minor: minorNotNegative.describe('A discount that the amount still includes, in minor units.'),
    net_amount_minor: minorNotNegative.describe('The amount without tax, shipping, fee and discount, never below 0.'),
    refunded_minor: minorNotNegative.describe('The amount refunded so far, in minor units.'),
    currency: storedCurrency,
    status: z
      .enum(['paid', 'partially_refunded', 'refunded'])
      .describe(
        '`paid`: nothing is refunded. `partially_refunded`: a part is refunded. `refunded`: the whole amount is refunded.',
      ),
    is_first_sale: z.boolean().describe("Whether this is the customer's first sale. True without a customer."),
    occurred_at: timestamp.describe('When the customer was charged.'),
    refunded_at: timestamp.nullable().describe('When the sale was last refunded. Null: never.'),
    metadata: storedMetadata,
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type Sale = z.infer<typeof sales.record>;

/** A sale that a partner is credited with. */
export type AttributedSale = Sale & { partner_id: string };

export const isAttributed = (sale: Sale): sale is AttributedSale => sale.partner_id !== null;

/** Emits that a sale was corrected: its amount, or else its partner or its place. */
export const emitUpdated = (tx: Tx, sale: AttributedSale, previous_amount_minor = sale.amount_minor): void =>
  tx.emit(event('sale.updated', sale, { previous_amount_minor }));

/** Returns the status of a sale by its refunds: none, a part, or all. A sale of 0 has nothing to refund. */
export const saleStatus = (amount_minor: number, refunded_minor: number): Sale['status'] => {
  if (refunded_minor === 0) return 'paid';
  return refunded_minor === amount_minor ? 'refunded' : 'partially_refunded';
};

/**
 * The sale, locked after its customer: the order in which a new sale takes these locks. A customer whom an earlier sale makes known meanwhile is locked
 * last: a deadlock runs the transaction again.
 */
export async function lockSale(
  tx: Tx,
  sale_id: string,
  { param = 'id' }: { param?: string } = {},
): Promise<{ sale: Sale; customer: Customer | undefined }> {
  const { customer_id } = await sales.get(tx, sale_id, { param });
  const customer = customer_id === null ? undefined : await lockCustomer(tx, customer_id);
  const sale = await sales.get(tx, sale_id, { lock: true });
  const isKnownNow = sale.customer_id !== null && sale.customer_id !== customer_id;
  return { sale, customer: isKnownNow ? await lockCustomer(tx, sale.customer_id as string) : customer };
}

/**
 * Has the customer follow the status of a sale. "Refunding all sets the customer `refunded`": also where a correction leaves nothing, and until a
 * correction or a reversal leaves something again, or the sale is deleted.
 */
export async function followStatus(
  tx: Tx,
  customer: Customer | undefined,
  before: Pick<Sale, 'status'>,
  after: Pick<Sale, 'status'>,
): Promise<void> {
  if (!customer || after.status === before.status) return;
  if (after.status === 'refunded') await customers.update(tx, customer.id, { status: 'refunded' });
  else if (before.status === 'refunded' && customer.status === 'refunded' && !(await hasRefundedSale(tx, customer)))
    await customers.update(tx, customer.id, { status: 'active' });
}

async function hasRefundedSale(tx: Tx, { id: customer_id }: Customer): Promise<boolean> {
  const sale = await sales.find(tx, sql`${tenant(tx)} and t.customer_id = ${customer_id} and t.status = 'refunded'`);
  return sale !== undefined;
}
