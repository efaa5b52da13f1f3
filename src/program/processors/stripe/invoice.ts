/** Reads an invoice: what was paid of it, by whom, and for what. https://docs.stripe.com/api/invoices/object */
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import type { Reading } from '../processor.ts';
import {
  amountAt,
  askForCharges,
  chargesIn,
  clickIn,
  currencyOf,
  idAt,
  minorAt,
  numberAt,
  type Occasion,
  question,
  shareOf,
  timeOf,
} from './fields.ts';

/** A balance, credits and a discount make `amount_paid` smaller: the sale is what was paid. */
export function invoicePaid(object: unknown, { at: time, answers }: Occasion): Reading {
  const id = textAt(object, 'id');
  if (id === undefined) return { kind: 'nothing', reason: 'unreadable', message: 'The invoice has no id.' };
  const amount_minor = amountAt(object, 'amount_paid');
  if (amount_minor <= 0)
    return { kind: 'nothing', reason: 'nothing_paid', message: 'Nothing was paid for the invoice, as in a trial.' };
  // The event names discounts by their ids, which say nothing of a promotion, and does not name its payments.
  const has_more_lines = at(object, 'lines', 'has_more') === true;
  const [told, ...others] = answers;
  const [lines, charges] = has_more_lines ? [others[0], others.slice(1)] : [at(object, 'lines'), others];
  const discounts = listAt(told ?? object, 'discounts');
  const subscription = at(object, 'parent', 'subscription_details');
  const click_id = clickIn(textAt(object, 'metadata', 'rail_click'), textAt(subscription, 'metadata', 'rail_click'));
  const external_customer_id = idAt(object, 'customer') ?? null;
  if (answers.length === 0) {
    const expand = { 'expand[0]': 'discounts', 'expand[1]': 'payments' };
    const by_coupon = discounts.some((one) => typeof one === 'string');
    const path = `/v1/invoices/${encodeURIComponent(id)}`;
    return {
      ask: [{ path, query: expand }, ...(has_more_lines ? [question(`${path}/lines`, {})] : [])],
      ...(by_coupon || has_more_lines
        ? { worth_it_for: { external_customer_id, click_id, by_coupon, payment_ids: [id] } }
        : { where_sales_are: ['pi_', 'ch_'] }),
    };
  }
  const payments = paymentsOf(told);
  if (payments.length > 0 && charges.length === 0) return askForCharges(payments);
  const billing_reason = textAt(object, 'billing_reason');
  const { product_id, products } = productsOf(lines);
  return [
    {
      kind: 'sale',
      ...{ external_charge_id: id, amount_minor, currency: currencyOf(object), parts: partsOf(object) },
      ...{ external_customer_id, click_id },
      external_subscription_id: idAt(subscription, 'subscription'),
      product_id,
      coupon_external_ids: discounts.flatMap((one) => idAt(one, 'promotion_code') ?? []),
      customer: {
        ...definite('email', textAt(object, 'customer_email')),
        ...definite('name', textAt(object, 'customer_name')),
      },
      occurred_at: paidAt(object) ?? time,
      metadata: {
        processor: 'stripe',
        ...definite('billing_reason', billing_reason),
        ...(products.length > 1 ? { products: products.join(',') } : {}),
      },
      also_known_as: [...payments, ...chargesIn(charges)],
    },
  ];
}

/** The payments that paid it, and those of charges without one. */
const paymentsOf = (invoice: unknown): string[] =>
  listAt(invoice, 'payments', 'data')
    .filter((one) => textAt(one, 'status') === 'paid')
    .flatMap((one) => idAt(one, 'payment', 'payment_intent') ?? idAt(one, 'payment', 'charge') ?? []);

const definite = <Name extends string>(name: Name, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: string };

const paidAt = (object: unknown): string | undefined => {
  const seconds = at(object, 'status_transitions', 'paid_at');
  return typeof seconds === 'number' ? timeOf(seconds) : undefined;
};

/** Taxes and shipping, as far as they were paid. */
function partsOf(object: unknown) {
  const [paid, whole] = [numberAt(object, 'amount_paid'), numberAt(object, 'total')];
  const taxes = listAt(object, 'total_taxes').reduce<number>((sum, tax) => sum + numberAt(tax, 'amount'), 0);
  const currency = textAt(object, 'currency');
  const share = (part: number): number =>
    Math.min(minorAt({ currency, part: shareOf(part, paid, whole) }, 'part'), minorAt(object, 'amount_paid'));
  const tax_minor = share(taxes);
  const shipping_minor = Math.min(
    share(numberAt(object, 'amount_shipping')),
    minorAt(object, 'amount_paid') - tax_minor,
  );
  return { tax_minor, shipping_minor };
}

/** The product of the largest line: a sale has one product, and rules match that. */
function productsOf(list: unknown): { product_id: string | undefined; products: string[] } {
  const lines = listAt(list, 'data')
    .map((line) => ({ product: textAt(line, 'pricing', 'price_details', 'product'), amount: numberAt(line, 'amount') }))
    .filter((line): line is { product: string; amount: number } => line.product !== undefined)
    .sort((one, other) => other.amount - one.amount || (one.product < other.product ? -1 : 1));
  return { product_id: lines[0]?.product, products: [...new Set(lines.map(({ product }) => product))].slice(0, 20) };
}
