/** Reads what Chargebee says that it charged, refunded and took back: its list of transactions. */
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { readProcessor } from '../call.ts';
import type { Account, Movement, Span } from '../processor.ts';
import { numberAt } from '../stripe/fields.ts';
import { atSite, caller } from './client.ts';
import { chargeOf, partsOf, partsOfRefund, paymentOf } from './events.ts';

/** Oldest first, until they are younger than the span. */
export async function chargebeeMovements(account: Account, { since, until }: Span, from: string | null) {
  const [begin, end] = [Date.parse(since) / 1000, Date.parse(until) / 1000];
  const query = {
    ...{ limit: '100', 'sort_by[asc]': 'date', 'date[after]': String(Math.floor(begin) - 1) },
    ...(from === null ? {} : { offset: from }),
  };
  const answer = await readProcessor(caller, atSite(account), '/api/v2/transactions', query);
  const all = listAt(answer, 'list').map((entry) => at(entry, 'transaction'));
  const within = all.filter((one) => numberAt(one, 'date') >= begin && numberAt(one, 'date') < end);
  const goes_on = numberAt(all.at(-1), 'date') < end;
  return { movements: within.flatMap(movementsOf), next: goes_on ? (textAt(answer, 'next_offset') ?? null) : null };
}

function movementsOf(transaction: unknown): Movement[] {
  const [id, type] = [textAt(transaction, 'id'), textAt(transaction, 'type')];
  if (id === undefined || textAt(transaction, 'status') !== 'success') return [];
  const [currency, amount_minor] = [textAt(transaction, 'currency_code') ?? '', numberAt(transaction, 'amount')];
  const moved = { about: [id], of: paymentOf(transaction) ?? null, currency };
  if (type === 'refund')
    return partsOfRefund(transaction).map((part) => ({
      kind: part.lost_by ? 'dispute' : 'refund',
      ...{ ids: [part.id], about: [id], of: part.of, currency, amount_minor: part.amount },
    }));
  if (type === 'payment_reversal') return [{ kind: 'dispute', ids: [id], ...moved, amount_minor }];
  if (type !== 'payment') return [];
  return partsOf(transaction).map(({ invoice, amount }) => ({
    ...{ kind: 'charge', ids: [chargeOf(invoice, id)], about: [id], of: null },
    ...{ amount_minor: amount, currency },
  }));
}
