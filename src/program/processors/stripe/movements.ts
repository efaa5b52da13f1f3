/** Reads what Stripe says that it charged, refunded and took back: its lists of charges, refunds and disputes. */
import { at, textAt } from '../../payouts/rails/answer.ts';
import type { Account, Movement, Span } from '../processor.ts';
import { currencyOf, idAt, minorAt, movesNothing } from './fields.ts';
import { type Listed, pageOfLists, secondsOf } from './look_up.ts';

const lists: readonly { path: string; read: (object: unknown) => Omit<Movement, 'currency'> | undefined }[] = [
  { path: '/v1/charges', read: charge },
  { path: '/v1/refunds', read: refund },
  { path: '/v1/disputes', read: dispute },
];

export async function stripeMovements(account: Account, { since, until }: Span, from: string | null) {
  const span = { 'created[gte]': secondsOf(since), 'created[lt]': secondsOf(until) };
  const { nth, objects, next } = await pageOfLists(
    account,
    lists.map(({ path }): Listed => [path, span]),
    from,
  );
  const movements = objects.flatMap((object): Movement[] => {
    const read = lists[nth]?.read(object);
    return read ? [{ ...read, currency: currencyOf(object) }] : [];
  });
  return { movements, next };
}

function charge(object: unknown) {
  const [id, payment] = [textAt(object, 'id'), idAt(object, 'payment_intent')];
  const amount_minor = minorAt(object, 'amount_captured');
  const is_paid = textAt(object, 'status') === 'succeeded' && at(object, 'captured') === true;
  if (id === undefined || !is_paid || amount_minor <= 0) return undefined;
  const ids = payment === undefined ? [id] : [payment, id];
  return { kind: 'charge' as const, ids, about: ids, of: null, amount_minor };
}

const paymentOf = (object: unknown): string | null => idAt(object, 'payment_intent') ?? idAt(object, 'charge') ?? null;

function refund(object: unknown) {
  const id = textAt(object, 'id');
  if (id === undefined || textAt(object, 'status') !== 'succeeded' || movesNothing(object)) return undefined;
  const amount_minor = minorAt(object, 'amount');
  return { kind: 'refund' as const, ids: [id], about: [id], of: paymentOf(object), amount_minor };
}

/** Inquiries take no money. */
function dispute(object: unknown) {
  const [id, status] = [textAt(object, 'id'), textAt(object, 'status') ?? ''];
  if (id === undefined || status.startsWith('warning_') || status === 'prevented') return undefined;
  const amount_minor = minorAt(object, 'amount');
  return { kind: 'dispute' as const, ids: [id], about: [id], of: paymentOf(object), amount_minor };
}
