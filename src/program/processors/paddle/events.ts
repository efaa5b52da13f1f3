/** The events of Paddle that have effects, and the facts in them. Amounts are texts, in minor units. https://developer.paddle.com/webhooks/overview */
import { at, listAt, table, textAt } from '../../payouts/rails/answer.ts';
import { type Fact, type Nothing, type Reading, Unreadable } from '../processor.ts';
import { clickIn, type Occasion, shareOf } from '../stripe/fields.ts';

interface Reader {
  /** The order of events of one moment. */
  rank: number;
  read(data: unknown, occasion: Occasion): Reading;
}

/** Paddle has no id of a dispute: there is one of a transaction, and one of its warnings, which may come to nothing before. */
export const disputeOf = (transaction_id: string): string => `chargeback_${transaction_id}`;
const warningOf = (transaction_id: string): string => `warning_${transaction_id}`;

const nothing = (reason: string, message: string): Nothing => ({ kind: 'nothing', reason, message });

export const readers = table<Reader>({
  'customer.created': { rank: 0, read: customer },
  'customer.updated': { rank: 1, read: customer },
  'subscription.created': { rank: 2, read: subscription },
  'subscription.trialing': { rank: 3, read: subscription },
  'transaction.completed': { rank: 4, read: transaction },
  'subscription.activated': { rank: 5, read: subscription },
  'subscription.updated': { rank: 6, read: subscription },
  'subscription.past_due': { rank: 7, read: subscription },
  'subscription.resumed': { rank: 7, read: subscription },
  'subscription.paused': { rank: 8, read: subscription },
  'subscription.canceled': { rank: 9, read: subscription },
  'adjustment.created': { rank: 10, read: adjustment },
  'adjustment.updated': { rank: 11, read: adjustment },
  'discount.updated': { rank: 12, read: discount },
});

const clickOf = (data: unknown): string | undefined => clickIn(textAt(data, 'custom_data', 'rail_click'));

/** Undefined where there is none: it is null, or no whole number that is exact. */
function wholeAt(data: unknown, path: string[]): number | undefined {
  const given = textAt(data, ...path) ?? '';
  const amount = Number(given);
  return /^-?\d{1,16}$/.test(given) && Number.isSafeInteger(amount) ? amount : undefined;
}

/** The amount that a sale, a refund or a dispute is of. @throws Unreadable */
function amountAt(data: unknown, ...path: string[]): number {
  const amount = wholeAt(data, path);
  if (amount === undefined) throw new Unreadable(`${path.join('.')} is not a whole number of minor units.`);
  return amount;
}

/** Zero where there is none. */
export const minorAt = (data: unknown, ...path: string[]): number => wholeAt(data, path) ?? 0;

/** ISO 8601. Undefined where there is none, or none that is of this age. */
export function timeAt(data: unknown, ...path: string[]): string | undefined {
  const time = Date.parse(textAt(data, ...path) ?? '');
  const iso = Number.isNaN(time) ? '' : new Date(time).toISOString();
  return iso >= '1970' ? iso : undefined;
}

const definite = <Name extends string>(name: Name, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [Key in Name]?: string };

function customer(data: unknown): Reading {
  const external_customer_id = textAt(data, 'id');
  if (external_customer_id === undefined) return nothing('unreadable', 'The customer has no id.');
  return [
    {
      kind: 'customer',
      ...{ external_customer_id, click_id: clickOf(data), customer_id: textAt(data, 'custom_data', 'rail_customer') },
      ...definite('email', textAt(data, 'email')),
      ...definite('name', textAt(data, 'name')),
    },
  ];
}

/** A credit makes the grand total smaller: the sale is what was charged. */
function transaction(data: unknown, { at: time }: Occasion): Reading {
  const id = textAt(data, 'id');
  if (id === undefined) return nothing('unreadable', 'The transaction has no id.');
  const totals = at(data, 'details', 'totals');
  const amount_minor = amountAt(data, 'details', 'totals', 'grand_total');
  if (amount_minor <= 0) return nothing('nothing_paid', 'Nothing was charged, as in a trial.');
  const tax_minor = Math.min(shareOf(minorAt(totals, 'tax'), amount_minor, minorAt(totals, 'total')), amount_minor);
  const fee_minor = Math.min(Math.max(minorAt(totals, 'fee'), 0), amount_minor - tax_minor);
  const external_customer_id = textAt(data, 'customer_id') ?? null;
  const click_id = clickOf(data);
  const { product_id, products } = productsOf(data);
  return [
    {
      kind: 'sale',
      ...{ external_charge_id: id, amount_minor, currency: textAt(data, 'currency_code') ?? '' },
      ...{ parts: { tax_minor, fee_minor }, external_customer_id, click_id, product_id, customer: {} },
      external_subscription_id: textAt(data, 'subscription_id'),
      coupon_external_ids: [textAt(data, 'discount_id')].filter((one) => one !== undefined),
      occurred_at: paidAt(data) ?? timeAt(data, 'billed_at') ?? time,
      metadata: {
        processor: 'paddle',
        ...definite('origin', textAt(data, 'origin')),
        ...(products.length > 1 ? { products: products.join(',') } : {}),
      },
      ...{ also_known_as: [], paid_for: [textAt(data, 'invoice_id') ?? id] },
    },
  ];
}

/** An invoice that is paid by bank transfer is billed weeks before the money is there. */
const paidAt = (data: unknown): string | undefined =>
  listAt(data, 'payments')
    .filter((one) => textAt(one, 'status') === 'captured')
    .flatMap((one) => timeAt(one, 'captured_at') ?? [])
    .sort()
    .at(-1);

/** The product of the largest line. */
function productsOf(data: unknown): { product_id: string | undefined; products: string[] } {
  const lines = listAt(data, 'details', 'line_items')
    .map((line) => ({ product: textAt(line, 'product', 'id'), amount: minorAt(line, 'totals', 'total') }))
    .filter((line): line is { product: string; amount: number } => line.product !== undefined)
    .sort((one, other) => other.amount - one.amount || (one.product < other.product ? -1 : 1));
  return { product_id: lines[0]?.product, products: [...new Set(lines.map(({ product }) => product))].slice(0, 20) };
}

const subscription_status = table<'trial' | 'active' | 'cancelled'>({
  trialing: 'trial',
  active: 'active',
  past_due: 'active',
  paused: 'cancelled',
  canceled: 'cancelled',
});

function subscription(data: unknown, { at: time }: Occasion): Reading {
  const [external_subscription_id, external_customer_id] = [textAt(data, 'id'), textAt(data, 'customer_id')];
  const status = subscription_status[textAt(data, 'status') ?? ''];
  if (external_subscription_id === undefined || external_customer_id === undefined || status === undefined)
    return nothing('unreadable', 'The subscription has no id, no customer or no status that is known.');
  const click_id = clickOf(data);
  return [{ kind: 'subscription', external_subscription_id, external_customer_id, click_id, status, at: time }];
}

type Disputed = Pick<Extract<Fact, { kind: 'dispute' }>, 'external_dispute_id' | 'status' | 'only_if_known'>;

/** Chargebacks and their reversals are adjustments of their own, which name the transaction alone. A chargeback ends its warning. */
const disputes_by = table<(transaction_id: string) => Disputed[]>({
  chargeback_warning: (of) => [{ external_dispute_id: warningOf(of), status: 'open' }],
  chargeback_warning_reverse: (of) => [{ external_dispute_id: warningOf(of), status: 'won' }],
  chargeback: (of) => [
    { external_dispute_id: disputeOf(of), status: 'lost' },
    { external_dispute_id: warningOf(of), status: 'won', only_if_known: true },
  ],
  chargeback_reverse: (of) => [{ external_dispute_id: disputeOf(of), status: 'won' }],
});

function adjustment(data: unknown, { at: time }: Occasion): Reading {
  const [id, of, action] = [textAt(data, 'id'), textAt(data, 'transaction_id'), textAt(data, 'action') ?? ''];
  if (id === undefined || of === undefined) return nothing('unreadable', 'The adjustment has no id or no transaction.');
  const status = textAt(data, 'status');
  const amount_minor = Math.abs(amountAt(data, 'totals', 'total'));
  const created = timeAt(data, 'created_at') ?? time;
  if (action === 'refund') return refund({ id, of, amount_minor, created }, status, data, time);
  const disputed = disputes_by[action]?.(of);
  if (disputed === undefined) return nothing('credit', 'A credit takes nothing back: it makes a later charge smaller.');
  if (status !== 'approved') return nothing('not_approved', 'The adjustment is not approved.');
  return disputed.map((one) => ({
    kind: 'dispute',
    ...{ ...one, of, amount_minor, at: time, currency: textAt(data, 'currency_code') },
    ...{ reason: textAt(data, 'reason'), opened_at: created },
  }));
}

interface Refunded {
  id: string;
  of: string;
  amount_minor: number;
  created: string;
}

function refund(
  { id, of, amount_minor, created }: Refunded,
  status: string | undefined,
  data: unknown,
  at: string,
): Reading {
  if (status !== 'approved' && status !== 'reversed' && status !== 'rejected')
    return nothing('refund_pending', 'The refund is not approved yet.');
  const fact: Fact = {
    kind: 'refund',
    ...{ external_refund_id: id, of, amount_minor, status: status === 'approved' ? 'succeeded' : 'failed' },
    ...{ currency: textAt(data, 'currency_code'), reason: textAt(data, 'reason'), refunded_at: created, at },
  };
  return [fact];
}

function discount(data: unknown, { at: time }: Occasion): Reading {
  const external_id = textAt(data, 'id');
  if (external_id === undefined) return nothing('unreadable', 'The discount has no id.');
  return [{ kind: 'coupon', external_id, active: textAt(data, 'status') === 'active', at: time }];
}
