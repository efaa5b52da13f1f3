import type { Json } from '../../harness.ts';

/** Objects of Stripe's API as its reference describes them, as far as they are read. `created`: Unix seconds. */
export const at = 1_764_000_000;

export const customer = (id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'customer', created: at, email: `${id}@customer.example.com`, name: 'Grace Hopper', metadata: {} },
  ...fields,
});

export const checkout = (id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'checkout.session', created: at, mode: 'subscription', payment_status: 'paid', status: 'complete' },
  ...{ client_reference_id: null, customer: null, invoice: null, payment_intent: null, subscription: null },
  ...{ amount_total: 9900, currency: 'usd', discounts: [], metadata: {}, livemode: false },
  ...{ total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 } },
  customer_details: { email: 'grace@customer.example.com', name: 'Grace Hopper' },
  ...fields,
});

export const line = (amount: number, product: string): Json => ({
  ...{ object: 'line_item', amount, currency: 'usd', quantity: 1, discounts: [] },
  pricing: { type: 'price_details', price_details: { price: `price_${product}`, product } },
});

export const invoice = (id: string, external_customer_id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'invoice', created: at, customer: external_customer_id, currency: 'usd', status: 'paid' },
  ...{ amount_due: 9900, amount_paid: 9900, subtotal: 9900, total: 9900, amount_shipping: 0, total_taxes: [] },
  ...{ billing_reason: 'subscription_cycle', discounts: [], metadata: {}, parent: null },
  ...{ customer_email: 'grace@customer.example.com', customer_name: 'Grace Hopper' },
  lines: { object: 'list', data: [line(9900, 'prod_basic')], has_more: false },
  status_transitions: { paid_at: fields.created ?? at, finalized_at: fields.created ?? at },
  ...fields,
});

export const ofSubscription = (subscription: string, metadata: Json = {}): Json => ({
  parent: { type: 'subscription_details', subscription_details: { subscription, metadata } },
});

export const invoicePayment = (invoice_id: string, payment_intent: string, fields: Json = {}): Json => ({
  ...{ id: `inpay_${payment_intent}`, object: 'invoice_payment', created: at, invoice: invoice_id, status: 'paid' },
  payment: { type: 'payment_intent', payment_intent },
  ...fields,
});

export const charge = (id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'charge', created: at, amount: 9900, amount_captured: 9900, amount_refunded: 0, captured: true },
  ...{ currency: 'usd', customer: null, paid: true, status: 'succeeded', metadata: {}, payment_intent: `pi_of_${id}` },
  billing_details: { email: 'grace@customer.example.com', name: 'Grace Hopper' },
  ...fields,
});

export const refund = (id: string, payment_intent: string, fields: Json = {}): Json => ({
  ...{ id, object: 'refund', created: at, amount: 9900, currency: 'usd', status: 'succeeded', reason: null },
  ...{ charge: `ch_of_${payment_intent}`, payment_intent },
  ...fields,
});

export const dispute = (id: string, payment_intent: string, fields: Json = {}): Json => ({
  ...{ id, object: 'dispute', created: at, amount: 9900, currency: 'usd', status: 'needs_response' },
  ...{ charge: `ch_of_${payment_intent}`, payment_intent, reason: 'fraudulent', livemode: false },
  ...fields,
});

export const subscription = (id: string, external_customer_id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'subscription', created: at, customer: external_customer_id, status: 'active', metadata: {} },
  ...fields,
});

export const promotionCode = (id: string, fields: Json = {}): Json => ({
  ...{ id, object: 'promotion_code', created: at, active: true, code: 'ADA20', metadata: {} },
  promotion: { type: 'coupon', coupon: 'co_20_off' },
  ...fields,
});

export const discount = (id: string, promotion_code: string | null): Json => ({
  ...{ id, object: 'discount', promotion_code, source: { type: 'coupon', coupon: 'co_20_off' } },
});
