/** The events of Stripe that have effects, and the facts in them. https://docs.stripe.com/api/events/types */
import { at, listAt, table, textAt } from '../../payouts/rails/answer.ts';
import type { Fact, Nothing, Reading, SaleFact } from '../processor.ts';
import {
  amountAt,
  askForCharges,
  chargesIn,
  clickIn,
  currencyOf,
  idAt,
  minorAt,
  movesNothing,
  numberAt,
  type Occasion,
  question,
  secondOf,
  timeOf,
} from './fields.ts';
import { invoicePaid } from './invoice.ts';

interface Reader {
  /** The order of events of one second: who it is, what was paid, what was taken back. */
  rank: number;
  read(object: unknown, occasion: Occasion): Reading;
}

export const nothing = (reason: string, message: string): Nothing => ({ kind: 'nothing', reason, message });

export const readers = table<Reader>({
  'customer.created': { rank: 0, read: customer },
  'customer.updated': { rank: 1, read: customer },
  'checkout.session.completed': { rank: 2, read: checkout },
  'checkout.session.async_payment_succeeded': { rank: 3, read: checkout },
  'customer.subscription.created': { rank: 4, read: subscription },
  'invoice.paid': { rank: 5, read: invoicePaid },
  'invoice_payment.paid': { rank: 6, read: invoicePayment },
  'charge.succeeded': { rank: 7, read: charge },
  'charge.captured': { rank: 8, read: charge },
  'customer.subscription.updated': { rank: 9, read: subscription },
  'customer.subscription.paused': { rank: 10, read: subscription },
  'customer.subscription.resumed': { rank: 10, read: subscription },
  'customer.subscription.deleted': { rank: 11, read: subscription },
  'refund.created': { rank: 12, read: refund },
  'refund.updated': { rank: 13, read: refund },
  'refund.failed': { rank: 14, read: refund },
  'charge.refunded': { rank: 15, read: refunds },
  'charge.dispute.created': { rank: 16, read: (object, { at }) => disputeFact(object, at) },
  'charge.dispute.funds_withdrawn': { rank: 17, read: (object, { at }) => disputeFact(object, at) },
  'charge.dispute.closed': { rank: 18, read: (object, { at }) => disputeFact(object, at) },
  'charge.dispute.funds_reinstated': { rank: 19, read: (object, { at }) => disputeFact(object, at, 'won') },
  'promotion_code.created': { rank: 20, read: promotionCode },
  'promotion_code.updated': { rank: 21, read: promotionCode },
  'coupon.deleted': { rank: 22, read: couponDeleted },
  'account.application.deauthorized': {
    rank: 23,
    read: () => [{ kind: 'disconnected', message: 'The application was removed from the Stripe account.' }],
  },
});

/** Says the email and the name, for whoever has no other. */
const identityOf = (email: string | undefined, name: string | undefined) => ({
  ...(email === undefined ? {} : { email }),
  ...(name === undefined ? {} : { name }),
});

function customer(object: unknown): Reading {
  const external_customer_id = textAt(object, 'id');
  if (external_customer_id === undefined) return nothing('unreadable', 'The customer has no id.');
  return [
    {
      kind: 'customer',
      external_customer_id,
      click_id: clickOf(object),
      customer_id: textAt(object, 'metadata', 'rail_customer'),
      ...identityOf(textAt(object, 'email'), textAt(object, 'name')),
    },
  ];
}

function checkout(object: unknown, { at: time, answers }: Occasion): Reading {
  const external_customer_id = idAt(object, 'customer');
  const click_id = clickIn(textAt(object, 'client_reference_id'), textAt(object, 'metadata', 'rail_click'));
  const who = identityOf(textAt(object, 'customer_details', 'email'), textAt(object, 'customer_details', 'name'));
  const bound: Fact[] =
    external_customer_id === undefined
      ? []
      : [
          {
            kind: 'customer',
            ...{ external_customer_id, click_id, ...who },
            customer_id: textAt(object, 'metadata', 'rail_customer'),
          },
        ];
  const paid = paidByCheckout(object, { external_customer_id, click_id, who, time });
  const payment = paid[0]?.external_charge_id;
  if (payment !== undefined && answers.length === 0) return askForCharges([payment]);
  const also_known_as = chargesIn(answers);
  const facts = [...bound, ...paid.map((sale) => ({ ...sale, also_known_as }))];
  return facts.length > 0
    ? facts
    : nothing('nothing_paid', 'The session names no customer, and nothing was paid by it.');
}

interface Buyer {
  external_customer_id: string | undefined;
  click_id: string | undefined;
  who: { email?: string; name?: string };
  /** When it was paid. */
  time: string;
}

/** A payment without an invoice. What an invoice is paid by is the sale of `invoice.paid`. */
function paidByCheckout(object: unknown, { external_customer_id, click_id, who, time }: Buyer): SaleFact[] {
  const payment = idAt(object, 'payment_intent');
  const is_paid = textAt(object, 'mode') === 'payment' && textAt(object, 'payment_status') === 'paid';
  if (!is_paid || payment === undefined || idAt(object, 'invoice') !== undefined) return [];
  const amount_minor = amountAt(object, 'amount_total');
  if (amount_minor <= 0) return [];
  return [
    {
      kind: 'sale',
      ...{ external_charge_id: payment, amount_minor, currency: currencyOf(object) },
      parts: {
        tax_minor: minorAt(object, 'total_details', 'amount_tax'),
        shipping_minor: minorAt(object, 'total_details', 'amount_shipping'),
      },
      ...{ external_customer_id: external_customer_id ?? null, click_id, customer: who },
      coupon_external_ids: listAt(object, 'discounts').flatMap((one) => idAt(one, 'promotion_code') ?? []),
      occurred_at: secondOf(time),
      metadata: { processor: 'stripe', checkout_session: textAt(object, 'id') ?? '' },
      ...{ also_known_as: [], paid_for: [textAt(object, 'id') ?? payment] },
    },
  ];
}

function invoicePayment(object: unknown): Reading {
  const [invoice, payment] = [idAt(object, 'invoice'), idAt(object, 'payment', 'payment_intent')];
  const external_id = payment ?? idAt(object, 'payment', 'charge');
  if (invoice === undefined || external_id === undefined)
    return nothing('no_charge', 'The invoice was not paid by a charge, so nothing can be refunded of it at Stripe.');
  return [{ kind: 'alias', of: invoice, external_id }];
}

const clickOf = (object: unknown): string | undefined => clickIn(textAt(object, 'metadata', 'rail_click'));

/** A charge by itself is a sale only where no invoice and no Checkout Session has it. */
function charge(object: unknown, { answers }: Occasion): Reading {
  const [id, payment] = [textAt(object, 'id'), idAt(object, 'payment_intent')];
  if (id === undefined) return nothing('unreadable', 'The charge has no id.');
  const amount_minor = at(object, 'captured') === true ? amountAt(object, 'amount_captured') : 0;
  if (amount_minor <= 0)
    return nothing('not_captured', 'The charge is authorized only. It becomes a sale when it is captured.');
  if (payment !== undefined && answers.length === 0)
    return {
      ask: [
        question('/v1/invoice_payments', { 'payment[type]': 'payment_intent', 'payment[payment_intent]': payment }),
      ],
      worth_it_for: {
        external_customer_id: idAt(object, 'customer') ?? null,
        click_id: clickOf(object),
        by_coupon: false,
        payment_ids: [payment, id],
      },
    };
  if (answers.includes(undefined))
    return nothing('unknown_payment', 'The account does not know the payment. It may be of another account.');
  const invoices = new Set(listAt(answers[0], 'data').flatMap((one) => idAt(one, 'invoice') ?? []));
  const [of] = invoices;
  if (of !== undefined && invoices.size === 1) return [{ kind: 'alias', of, external_id: id }];
  if (of !== undefined)
    return nothing('paid_by_invoice', 'The charge paid invoices: the sales are those of invoice.paid.');
  if (payment !== undefined && answers.length === 1)
    return { ask: [question('/v1/checkout/sessions', { payment_intent: payment })] };
  if (listAt(answers[1], 'data').length > 0)
    return nothing('paid_by_checkout', 'The charge was made by a Checkout Session: the sale is that of its event.');
  return [
    {
      kind: 'sale',
      ...{ external_charge_id: payment ?? id, amount_minor, currency: currencyOf(object), parts: {} },
      external_customer_id: idAt(object, 'customer') ?? null,
      click_id: clickOf(object),
      coupon_external_ids: [],
      customer: identityOf(
        textAt(object, 'billing_details', 'email') ?? textAt(object, 'receipt_email'),
        textAt(object, 'billing_details', 'name'),
      ),
      occurred_at: timeOf(at(object, 'created')),
      metadata: { processor: 'stripe', charge: id },
      also_known_as: payment === undefined ? [] : [id],
    },
  ];
}

const subscription_status = table<'trial' | 'active' | 'cancelled'>({
  trialing: 'trial',
  active: 'active',
  past_due: 'active',
  paused: 'cancelled',
  unpaid: 'cancelled',
  canceled: 'cancelled',
  incomplete_expired: 'cancelled',
});

function subscription(object: unknown, { at: time }: Occasion): Reading {
  const [external_subscription_id, external_customer_id] = [textAt(object, 'id'), idAt(object, 'customer')];
  const status = subscription_status[textAt(object, 'status') ?? ''];
  if (external_subscription_id === undefined || external_customer_id === undefined)
    return nothing('unreadable', 'The subscription has no id or no customer.');
  if (status === undefined) return nothing('not_begun', 'The first payment of the subscription is still to come.');
  const click_id = clickOf(object);
  return [{ kind: 'subscription', external_subscription_id, external_customer_id, click_id, status, at: time }];
}

/** The payment that is refunded or disputed. */
const paymentOf = (object: unknown): string | undefined => idAt(object, 'payment_intent') ?? idAt(object, 'charge');

const currencyIn = (object: unknown): string | undefined => currencyOf(object) || undefined;

const refund_status = table<'succeeded' | 'failed'>({
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'failed',
});

function refund(object: unknown, { at: time, answers }: Occasion): Reading {
  const [external_refund_id, of] = [textAt(object, 'id'), paymentOf(object)];
  const status = refund_status[textAt(object, 'status') ?? ''];
  if (external_refund_id === undefined || of === undefined) return nothing('no_charge', 'The refund is of no charge.');
  if (status === undefined) return nothing('refund_pending', 'The refund has not succeeded yet.');
  const charge_id = idAt(object, 'charge');
  if (movesNothing(object) && charge_id !== undefined && answers.length === 0)
    return { ask: [{ path: `/v1/charges/${encodeURIComponent(charge_id)}` }] };
  if (movesNothing(object) && numberAt(object, 'amount') === uncapturedOf(answers[0]))
    return nothing('not_captured', 'What was authorized and not captured was released: no money moved.');
  return [
    {
      kind: 'refund',
      ...{ external_refund_id, of, status, at: time },
      ...{ amount_minor: amountAt(object, 'amount'), currency: currencyIn(object) },
      reason: textAt(object, 'reason'),
      refunded_at: timeOf(at(object, 'created')),
    },
  ];
}

const uncapturedOf = (charge: unknown): number => numberAt(charge, 'amount') - numberAt(charge, 'amount_captured');

/** The event of a charge does not hold its refunds: they are asked for. */
function refunds(object: unknown, { at: time, answers }: Occasion): Reading {
  const id = textAt(object, 'id');
  if (id === undefined) return nothing('unreadable', 'The charge has no id.');
  if (answers.length === 0) return { ask: [question('/v1/refunds', { charge: id })] };
  const read = listAt(answers[0], 'data').map((one) => refund(one, { at: time, answers: [object] }));
  const facts = read.flatMap((one) => (Array.isArray(one) ? one : []));
  return facts.length > 0 ? facts : nothing('refund_pending', 'No refund of the charge has succeeded yet.');
}

function disputeFact(object: unknown, time: string, outcome?: 'won'): Reading {
  const [external_dispute_id, of, stated] = [textAt(object, 'id'), paymentOf(object), textAt(object, 'status') ?? ''];
  if (external_dispute_id === undefined || of === undefined)
    return nothing('unreadable', 'The dispute has no id or no charge.');
  const is_inquiry = stated.startsWith('warning_');
  if (is_inquiry && stated !== 'warning_closed')
    return nothing('inquiry', 'The bank asks about the charge. No money was taken.');
  const closed = stated === 'lost' ? 'lost' : ['won', 'warning_closed', 'prevented'].includes(stated) ? 'won' : 'open';
  return [
    {
      kind: 'dispute',
      ...{ external_dispute_id, of, at: time, status: outcome ?? closed },
      ...(is_inquiry || stated === 'prevented' ? { only_if_known: true } : {}),
      ...{ amount_minor: amountAt(object, 'amount'), currency: currencyIn(object) },
      reason: textAt(object, 'reason'),
      opened_at: timeOf(at(object, 'created')),
    },
  ];
}

function promotionCode(object: unknown, { at: time }: Occasion): Reading {
  const external_id = textAt(object, 'id');
  if (external_id === undefined) return nothing('unreadable', 'The promotion code has no id.');
  return [{ kind: 'coupon', external_id, active: at(object, 'active') === true, at: time }];
}

function couponDeleted(object: unknown, { at: time, answers }: Occasion): Reading {
  const id = textAt(object, 'id');
  if (id === undefined) return nothing('unreadable', 'The coupon has no id.');
  if (answers.length === 0) return { ask: [question('/v1/promotion_codes', { coupon: id })] };
  const ids = listAt(answers[0], 'data').flatMap((one) => textAt(one, 'id') ?? []);
  if (ids.length === 0) return nothing('no_coupon', 'The coupon has no promotion codes.');
  return ids.map((external_id) => ({ kind: 'coupon' as const, external_id, active: false, at: time }));
}
