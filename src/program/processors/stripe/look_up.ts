/** Looks up what Stripe knows: the events of the last 30 days, and objects by their ids. */
import { at, listAt, table, textAt } from '../../payouts/rails/answer.ts';
import { api_version } from '../../payouts/rails/stripe.ts';
import type { Account, Page } from '../processor.ts';
import { readStripe } from './client.ts';
import { readers } from './events.ts';
import { idAt, numberAt } from './fields.ts';

/** The most types that a list of events may name. */
const most_types = 20;
const types = Object.keys(readers);
const chunks = Array.from({ length: Math.ceil(types.length / most_types) }, (_, nth) =>
  types.slice(nth * most_types, (nth + 1) * most_types),
);

/** The path at which an object is read anew, by its kind. */
const paths = table<string>({
  customer: 'customers',
  'checkout.session': 'checkout/sessions',
  subscription: 'subscriptions',
  invoice: 'invoices',
  charge: 'charges',
  refund: 'refunds',
  dispute: 'disputes',
  promotion_code: 'promotion_codes',
});

/** A list with its query. */
export type Listed = readonly [path: string, query: Record<string, string>];

/** A page of lists that are read one after the other: `1:evt_…` goes on with the second. `nth`: the list that it is of. */
export async function pageOfLists(
  account: Account,
  lists: readonly Listed[],
  from: string | null,
): Promise<{ nth: number; objects: unknown[]; next: string | null }> {
  const [nth, after] = [Number(from?.split(':')[0] ?? 0), from?.split(':')[1] ?? ''];
  const [path, query] = lists[nth] ?? ['', {}];
  const list = await readStripe(account, path, {
    ...{ limit: '100', ...query },
    ...(after === '' ? {} : { starting_after: after }),
  });
  const objects = listAt(list, 'data');
  const last = textAt(objects.at(-1), 'id');
  const next_list = nth + 1 < lists.length ? `${nth + 1}:` : null;
  const has_more = at(list, 'has_more') === true && last !== undefined;
  return { nth, objects, next: has_more ? `${nth}:${last}` : next_list };
}

export const secondsOf = (time: string): string => String(Math.floor(Date.parse(time) / 1000));

/** A list names few types, so the events are read in lists one after the other. */
export async function stripeEvents(account: Account, since: string, from: string | null): Promise<Page> {
  const lists = chunks.map((types): Listed => {
    const named = Object.fromEntries(types.map((type, place) => [`types[${place}]`, type]));
    return ['/v1/events', { 'created[gte]': secondsOf(since), ...named }];
  });
  const { objects: events, next } = await pageOfLists(account, lists, from);
  return { events, next };
}

/**
 * Stripe keeps an event in the version that the account had then, and sends it in that of the endpoint, which may have been made by hand: in another
 * version, its object is read anew. Undefined: it is in the version that is read here.
 */
export function pathInOurVersion(event: unknown): string | undefined {
  const [kind, id] = [textAt(event, 'data', 'object', 'object') ?? '', textAt(event, 'data', 'object', 'id')];
  const [version = api_version, path] = [textAt(event, 'api_version'), paths[kind]];
  if (version === api_version || path === undefined || id === undefined) return undefined;
  return `/v1/${path}/${encodeURIComponent(id)}`;
}

/** The event that says what an object is. Its id is of the object, so that it is taken in once. */
const eventOf = (type: string, object: unknown, mode: Account['mode']): object => ({
  ...{ id: `found_${textAt(object, 'id')}`, object: 'event', type, created: numberAt(object, 'created') },
  ...{ livemode: mode === 'live', data: { object } },
});

const isPaid = (object: unknown): boolean => ['paid', 'succeeded'].includes(textAt(object, 'status') ?? '');

export async function findAtStripe(account: Account, external_id: string): Promise<unknown[]> {
  const read = (path: string, query?: Record<string, string>) => readStripe(account, path, query);
  const id = encodeURIComponent(external_id);
  if (external_id.startsWith('in_')) {
    const invoice = await read(`/v1/invoices/${id}`);
    return isPaid(invoice) ? [eventOf('invoice.paid', invoice, account.mode)] : [];
  }
  if (external_id.startsWith('ch_')) {
    const charge = await read(`/v1/charges/${id}`);
    return isPaid(charge) ? [eventOf('charge.succeeded', charge, account.mode)] : [];
  }
  if (!external_id.startsWith('pi_')) return [];
  return findPayment(external_id, read, account.mode);
}

type Read = (path: string, query?: Record<string, string>) => Promise<unknown>;

/** A payment is that of an invoice, of a Checkout Session, or of a charge by itself. */
async function findPayment(payment: string, read: Read, mode: Account['mode']): Promise<unknown[]> {
  const by_invoice = { 'payment[type]': 'payment_intent', 'payment[payment_intent]': payment, limit: '100' };
  const paid = listAt(await read('/v1/invoice_payments', by_invoice), 'data').filter(isPaid);
  if (paid.length > 0) {
    const ids = [...new Set(paid.flatMap((one) => idAt(one, 'invoice') ?? []))];
    const invoices = await Promise.all(ids.map((id) => read(`/v1/invoices/${encodeURIComponent(id)}`)));
    return [
      ...invoices.filter(isPaid).map((invoice) => eventOf('invoice.paid', invoice, mode)),
      ...paid.map((one) => eventOf('invoice_payment.paid', one, mode)),
    ];
  }
  const sessions = listAt(await read('/v1/checkout/sessions', { payment_intent: payment, limit: '100' }), 'data');
  if (sessions.length > 0) return sessions.map((session) => eventOf('checkout.session.completed', session, mode));
  const charges = listAt(await read('/v1/charges', { payment_intent: payment, limit: '100' }), 'data');
  return charges.filter(isPaid).map((charge) => eventOf('charge.succeeded', charge, mode));
}

/** The lists that a history is made of, with the type of event that says what one of it is: who customers are first, then what they paid. */
const histories: readonly [path: string, type: string, query: Record<string, string>][] = [
  ['/v1/customers', 'customer.created', {}],
  ['/v1/checkout/sessions', 'checkout.session.completed', { status: 'complete' }],
  ['/v1/subscriptions', 'customer.subscription.updated', { status: 'all' }],
  ['/v1/invoices', 'invoice.paid', { status: 'paid' }],
  ['/v1/invoice_payments', 'invoice_payment.paid', { status: 'paid' }],
  ['/v1/charges', 'charge.succeeded', {}],
  ['/v1/refunds', 'refund.updated', {}],
  ['/v1/disputes', 'charge.dispute.closed', {}],
];

export async function stripeHistory(account: Account, since: string, from: string | null): Promise<Page> {
  const lists = histories.map(([path, , query]): Listed => [path, { 'created[gte]': secondsOf(since), ...query }]);
  const { nth, objects, next } = await pageOfLists(account, lists, from);
  const type = histories[nth]?.[1] ?? '';
  const told = objects.filter((object) => type !== 'charge.succeeded' || isPaid(object));
  return { events: told.map((object) => eventOf(type, object, account.mode)), next };
}
