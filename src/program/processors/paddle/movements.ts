/** Reads what Paddle says that it charged, refunded and took back: its lists of transactions and adjustments. */
import { at, listAt, textAt } from '../../payouts/rails/answer.ts';
import { readProcessor } from '../call.ts';
import type { Account, Movement, Span } from '../processor.ts';
import { caller } from './client.ts';
import { disputeOf, minorAt } from './events.ts';

/** First the transactions, which can be asked for by time; then the adjustments, newest first, until they are older: `adjustments:adj_…`. */
export function paddleMovements(
  account: Account,
  span: Span,
  from: string | null,
): Promise<{ movements: Movement[]; next: string | null }> {
  const [list, after] = from?.split(':') ?? ['transactions', ''];
  return list === 'adjustments' ? adjustments(account, span, after) : transactions(account, span, after);
}

const paged = (after: string | undefined): Record<string, string> => (after ? { after } : {});

async function transactions(account: Account, { since, until }: Span, after: string | undefined) {
  const billed = { 'billed_at[GTE]': since, 'billed_at[LT]': until, status: 'completed' };
  const query = { per_page: '200', order_by: 'id[ASC]', ...billed, ...paged(after) };
  const answer = await readProcessor(caller, account, '/transactions', query);
  const list = listAt(answer, 'data');
  const movements = list.flatMap((data): Movement[] => {
    const [id, amount_minor] = [textAt(data, 'id'), minorAt(data, 'details', 'totals', 'grand_total')];
    if (id === undefined || amount_minor <= 0) return [];
    return [{ kind: 'charge', ids: [id], about: [id], of: null, amount_minor, currency: currencyOf(data) }];
  });
  const last = textAt(list.at(-1), 'id');
  const goes_on = hasMore(answer) && last !== undefined;
  return { movements, next: goes_on ? `transactions:${last}` : 'adjustments:' };
}

const hasMore = (answer: unknown): boolean => at(answer, 'meta', 'pagination', 'has_more') === true;
const currencyOf = (data: unknown): string => textAt(data, 'currency_code') ?? '';

async function adjustments(account: Account, span: Span, after: string | undefined) {
  const query = { per_page: '50', order_by: 'id[DESC]', ...paged(after) };
  const answer = await readProcessor(caller, account, '/adjustments', query);
  const list = listAt(answer, 'data');
  const [since, until] = [Date.parse(span.since), Date.parse(span.until)];
  const timeOf = (data: unknown): number => Date.parse(textAt(data, 'created_at') ?? '');
  const movements = list
    .filter((data) => timeOf(data) >= since && timeOf(data) < until)
    .flatMap((data) => movementOf(data) ?? []);
  const last = textAt(list.at(-1), 'id');
  const goes_on = hasMore(answer) && last !== undefined && timeOf(list.at(-1)) >= since;
  return { movements, next: goes_on ? `adjustments:${last}` : null };
}

/** A warning takes no money, and what it becomes is an adjustment of its own. */
function movementOf(data: unknown): Movement | undefined {
  const [id, of, action] = [textAt(data, 'id'), textAt(data, 'transaction_id'), textAt(data, 'action')];
  if (id === undefined || of === undefined || textAt(data, 'status') !== 'approved') return undefined;
  const amount_minor = Math.abs(minorAt(data, 'totals', 'total'));
  const moved = { about: [id], of, amount_minor, currency: currencyOf(data) };
  if (action === 'refund') return { kind: 'refund', ids: [id], ...moved };
  return action === 'chargeback' ? { kind: 'dispute', ids: [disputeOf(of), id], ...moved } : undefined;
}
