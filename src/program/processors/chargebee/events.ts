/** The events of Chargebee that have effects, and the facts in them. https://apidocs.chargebee.com/docs/api/events#event_types */
import { at, listAt, table, textAt } from '../../payouts/rails/answer.ts';
import type { Fact, Nothing, Reading, SaleFact } from '../processor.ts';
import { clickIn, numberAt, type Occasion, requireAmount, shareOf, timeOf } from '../stripe/fields.ts';

interface Reader {
  /** The order of events of one second. */
  rank: number;
  /** The object of `content` that it is about. */
  about: 'customer' | 'subscription' | 'transaction' | 'coupon';
  read(content: unknown, occasion: Occasion): Reading;
}

const nothing = (reason: string, message: string): Nothing => ({ kind: 'nothing', reason, message });

export const readers = table<Reader>({
  customer_created: { rank: 0, about: 'customer', read: customer },
  customer_changed: { rank: 1, about: 'customer', read: customer },
  subscription_created: { rank: 2, about: 'subscription', read: subscription },
  subscription_started: { rank: 3, about: 'subscription', read: subscription },
  payment_succeeded: { rank: 4, about: 'transaction', read: payment },
  subscription_activated: { rank: 5, about: 'subscription', read: subscription },
  subscription_changed: { rank: 6, about: 'subscription', read: subscription },
  subscription_reactivated: { rank: 7, about: 'subscription', read: subscription },
  subscription_resumed: { rank: 7, about: 'subscription', read: subscription },
  subscription_paused: { rank: 8, about: 'subscription', read: subscription },
  subscription_cancelled: { rank: 9, about: 'subscription', read: subscription },
  subscription_deleted: { rank: 10, about: 'subscription', read: subscription },
  payment_refunded: { rank: 11, about: 'transaction', read: refund },
  transaction_created: { rank: 12, about: 'transaction', read: reversal },
  coupon_deleted: { rank: 13, about: 'coupon', read: coupon },
});

const definite = <Name extends string>(name: Name, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: string };

function whoIs(content: unknown): { email?: string; name?: string } {
  const name = [textAt(content, 'customer', 'first_name'), textAt(content, 'customer', 'last_name')]
    .filter((part) => part !== undefined)
    .join(' ');
  return {
    ...definite('email', textAt(content, 'customer', 'email')),
    ...definite('name', name === '' ? undefined : name),
  };
}

/** A custom field of the subscription or of the customer. */
export const clickOf = (content: unknown): string | undefined =>
  clickIn(textAt(content, 'subscription', 'cf_rail_click'), textAt(content, 'customer', 'cf_rail_click'));

function customer(content: unknown): Reading {
  const external_customer_id = textAt(content, 'customer', 'id');
  if (external_customer_id === undefined) return nothing('unreadable', 'The event holds no customer.');
  const customer_id = textAt(content, 'customer', 'cf_rail_customer');
  return [{ kind: 'customer', external_customer_id, click_id: clickOf(content), customer_id, ...whoIs(content) }];
}

/** An invoice may be paid in parts, and a payment may be for several: each part is a sale. */
function payment(content: unknown, { at: time, answers: [, ...told] }: Occasion): Reading {
  const transaction = at(content, 'transaction');
  const id = textAt(transaction, 'id');
  if (id === undefined) return nothing('unreadable', 'The event holds no transaction.');
  if (textAt(transaction, 'type') !== 'payment' || textAt(transaction, 'status') !== 'success')
    return nothing('no_payment', 'The transaction is no payment that succeeded.');
  requireAmount(transaction, 'amount');
  const parts = partsOf(transaction);
  // The event holds one of the invoices: taxes, products and coupons of the others are asked for.
  const others = parts.flatMap(({ invoice }) =>
    invoice === undefined || invoice === textAt(content, 'invoice', 'id') ? [] : [invoice],
  );
  if (others.length > told.length)
    return { ask: others.map((one) => ({ path: `/invoices/${encodeURIComponent(one)}` })) };
  const invoices = [at(content, 'invoice'), ...told.map((one) => at(one, 'invoice'))];
  const sales = parts.map(({ invoice, amount }, nth) =>
    saleOf(content, { id, invoice, amount, time, is_first: nth === 0 }, invoices),
  );
  return sales.length > 0 ? sales : nothing('nothing_paid', 'Nothing was paid.');
}

/** The parts of a payment: the invoices that it paid, or what has none. */
export function partsOf(transaction: unknown): { invoice: string | undefined; amount: number }[] {
  const linked = listAt(transaction, 'linked_invoices').filter((one) => numberAt(one, 'applied_amount') > 0);
  const parts = linked.map((one) => ({ invoice: textAt(one, 'invoice_id'), amount: numberAt(one, 'applied_amount') }));
  const all = parts.length > 0 ? parts : [{ invoice: undefined, amount: numberAt(transaction, 'amount') }];
  return all.filter(({ amount }) => amount > 0);
}

/** The id of the charge of a part. */
export const chargeOf = (invoice: string | undefined, transaction_id: string): string =>
  invoice === undefined ? transaction_id : `${invoice}_${transaction_id}`;

interface Part {
  id: string;
  invoice: string | undefined;
  amount: number;
  time: string;
  /** Refunds name the payment: they are of its first part. */
  is_first: boolean;
}

function saleOf(content: unknown, { id, invoice, amount, time, is_first }: Part, invoices: unknown[]): SaleFact {
  const transaction = at(content, 'transaction');
  const billed = invoices.find((one) => textAt(one, 'id') === invoice);
  const date = numberAt(transaction, 'date');
  const tax_minor = Math.min(shareOf(numberAt(billed, 'tax'), amount, numberAt(billed, 'total')), amount);
  const [largest] = listAt(billed, 'line_items')
    .filter((line) => textAt(line, 'entity_id') !== undefined)
    .sort((one, other) => numberAt(other, 'amount') - numberAt(one, 'amount'));
  return {
    kind: 'sale',
    external_charge_id: chargeOf(invoice, id),
    ...{ amount_minor: amount, currency: textAt(transaction, 'currency_code') ?? '', parts: { tax_minor } },
    external_customer_id: textAt(transaction, 'customer_id') ?? textAt(content, 'customer', 'id') ?? null,
    external_subscription_id: textAt(transaction, 'subscription_id') ?? textAt(content, 'subscription', 'id'),
    product_id: textAt(largest, 'entity_id'),
    ...{ click_id: clickOf(content), customer: whoIs(content) },
    coupon_external_ids: listAt(billed, 'discounts').flatMap((one) => textAt(one, 'entity_id') ?? []),
    occurred_at: date > 0 ? timeOf(date) : time,
    metadata: { processor: 'chargebee', ...definite('invoice', invoice) },
    ...{ also_known_as: is_first ? [id] : [], paid_for: invoice === undefined ? [] : [invoice] },
  };
}

export const paymentOf = (transaction: unknown): string | undefined =>
  textAt(transaction, 'refunded_txn_id') ??
  textAt(transaction, 'linked_payments', '0', 'id') ??
  textAt(transaction, 'reference_transaction_id');

interface PartOfRefund {
  id: string;
  of: string;
  amount: number;
  /** The reason for which a bank took it back, where no merchant gave it. */
  lost_by: string | undefined;
}

/** The parts of a refund: what it takes back of the invoices that its credit notes are for, or else of the payment's first part. */
export function partsOfRefund(transaction: unknown): PartOfRefund[] {
  const [id, payment] = [textAt(transaction, 'id'), paymentOf(transaction)];
  if (id === undefined || payment === undefined) return [];
  const by_method = lossOf(textAt(transaction, 'payment_method'));
  const notes = listAt(transaction, 'linked_credit_notes').flatMap((note) => {
    const [invoice, amount] = [textAt(note, 'cn_reference_invoice_id'), numberAt(note, 'applied_amount')];
    if (invoice === undefined || amount <= 0) return [];
    return [
      { cn_id: textAt(note, 'cn_id'), invoice, amount, lost_by: by_method ?? lossOf(textAt(note, 'cn_reason_code')) },
    ];
  });
  const whole = numberAt(transaction, 'amount');
  if (notes.reduce((sum, { amount }) => sum + amount, 0) !== whole)
    return [{ id, of: payment, amount: whole, lost_by: by_method ?? notes.find(({ lost_by }) => lost_by)?.lost_by }];
  const idOf = (cn_id: string | undefined) => (notes.length > 1 ? `${id}_${cn_id}` : id);
  return notes.map(({ cn_id, invoice, ...part }) => ({ id: idOf(cn_id), of: chargeOf(invoice, payment), ...part }));
}

/** A method or a reason by which a bank takes money back. */
const lossOf = (text: string | undefined): string | undefined =>
  text === 'chargeback' || text === 'fraudulent' ? text : undefined;

function refund(content: unknown, { at: time }: Occasion): Reading {
  const transaction = at(content, 'transaction');
  const parts = partsOfRefund(transaction);
  if (parts.length === 0) return nothing('no_charge', 'The refund names no payment that it is of.');
  if (textAt(transaction, 'status') !== 'success') return nothing('refund_pending', 'The refund has not succeeded.');
  requireAmount(transaction, 'amount');
  const date = numberAt(transaction, 'date');
  const made_at = date > 0 ? timeOf(date) : time;
  return parts.map(({ id, of, amount, lost_by }): Fact => {
    const taken = { of, amount_minor: amount, currency: textAt(transaction, 'currency_code'), at: time };
    return lost_by === undefined
      ? { kind: 'refund', external_refund_id: id, ...taken, status: 'succeeded', refunded_at: made_at }
      : {
          kind: 'dispute',
          external_dispute_id: id,
          ...taken,
          status: 'lost',
          is_refund: true,
          reason: lost_by,
          opened_at: made_at,
        };
  });
}

/** A payment that the bank took back is a dispute that is lost: of each invoice that it had paid, as the payment says. */
function reversal(content: unknown, { at: time, answers }: Occasion): Reading {
  const transaction = at(content, 'transaction');
  if (textAt(transaction, 'type') !== 'payment_reversal')
    return nothing('no_reversal', 'The transaction takes back no payment.');
  const [id, of] = [textAt(transaction, 'id'), paymentOf(transaction)];
  if (id === undefined || of === undefined) return nothing('no_charge', 'The reversal names no payment that it is of.');
  requireAmount(transaction, 'amount');
  if (answers.length < 2) return { ask: [{ path: `/transactions/${encodeURIComponent(of)}` }] };
  const date = numberAt(transaction, 'date');
  return partsOfReversal({ id, of, amount: numberAt(transaction, 'amount') }, at(answers[1], 'transaction')).map(
    (part): Fact => ({
      kind: 'dispute',
      ...{ external_dispute_id: part.id, of: part.of, amount_minor: part.amount, status: 'lost', at: time },
      currency: textAt(transaction, 'currency_code'),
      opened_at: date > 0 ? timeOf(date) : time,
    }),
  );
}

interface TakenBack {
  id: string;
  /** The id of the payment, which is that of its first part. */
  of: string;
  amount: number;
}

/** All of it is of the first part, unless the parts of the payment come to it. */
function partsOfReversal(whole: TakenBack, payment: unknown): TakenBack[] {
  const [first, ...others] = partsOf(payment);
  const rest = others.reduce((sum, { amount }) => sum + amount, 0);
  if (first === undefined || first.amount + rest !== whole.amount) return [whole];
  return [
    { ...whole, amount: first.amount },
    ...others.map(({ invoice, amount }) => ({
      ...{ id: `${whole.id}_${invoice}`, of: chargeOf(invoice, whole.of), amount },
    })),
  ];
}

const subscription_status = table<'trial' | 'active' | 'cancelled'>({
  in_trial: 'trial',
  active: 'active',
  non_renewing: 'active',
  paused: 'cancelled',
  cancelled: 'cancelled',
});

function subscription(content: unknown, { at: time }: Occasion): Reading {
  const [object, id] = [at(content, 'subscription'), textAt(content, 'subscription', 'id')];
  const external_customer_id = textAt(object, 'customer_id') ?? textAt(content, 'customer', 'id');
  if (id === undefined || external_customer_id === undefined)
    return nothing('unreadable', 'The subscription has no id or no customer.');
  const is_deleted = at(object, 'deleted') === true;
  const status = is_deleted ? 'cancelled' : subscription_status[textAt(object, 'status') ?? ''];
  if (status === undefined) return nothing('not_begun', 'The subscription has not begun.');
  const click_id = clickOf(content);
  return [{ kind: 'subscription', external_subscription_id: id, external_customer_id, click_id, status, at: time }];
}

function coupon(content: unknown, { at: time }: Occasion): Reading {
  const external_id = textAt(content, 'coupon', 'id');
  if (external_id === undefined) return nothing('unreadable', 'The event holds no coupon.');
  return [{ kind: 'coupon', external_id, active: false, at: time }];
}
