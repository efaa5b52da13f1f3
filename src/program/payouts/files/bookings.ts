/** Applies a bank's booking: finds which execution, or which return, of a payment it is. The caller has locked the payout. */
import type { Tx } from '../../../core/postgres/transaction.ts';
import { type Bookings, type PayoutAttempt, updateAttempt } from '../attempt.ts';
import { type AnyPayout, type AttemptOutcome, applyCopy, applyOutcome, paymentsOf } from '../attempt_outcome.ts';

/** `known`: it was booked before. A text: why nothing was changed. */
export type Booked = 'applied' | 'known' | { reason: string };

interface Booking {
  references: string[];
  is_duplicate: boolean;
}

/** "A second success writes a `clawback` of the excess": a debit of another reference is a second execution of the payment. */
export async function applyDebit(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  { references }: Booking,
  outcome: AttemptOutcome & { status: 'paid' },
): Promise<Booked> {
  const before = bookingsOf(attempt);
  const is_new = isNew(before.debits, references);
  const bookings = { ...before, debits: joined(before.debits, references) };
  // A person who marked it as failed knew of the return.
  const is_of_copy = before.debits.length > 0 || attempt.status === 'failed';
  if (is_new && is_of_copy && before.returned_copies > 0) {
    await note(tx, attempt, { ...bookings, returned_copies: before.returned_copies - 1 });
    return 'known';
  }
  await note(tx, attempt, bookings);
  if (!is_new) return 'known';
  if (before.debits.length > 0) await applyCopy(tx, payout, attempt, outcome);
  else await applyOutcome(tx, payout, attempt, outcome);
  return 'applied';
}

/** Applies a credit. A payment that comes back as a duplicate, or once more than it was debited, is a copy: the payment itself keeps its known status. */
export async function applyCredit(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  { references, is_duplicate }: Booking,
  outcome: AttemptOutcome & { status: 'returned' },
): Promise<Booked> {
  const before = bookingsOf(attempt);
  const bookings = { ...before, returns: joined(before.returns, references) };
  const is_new = isNew(before.returns, references);
  const is_of_copy = attempt.status === 'returned' || (is_duplicate && (await paymentsOf(tx, payout.id)) < 2);
  if (is_new && is_of_copy) {
    await note(tx, attempt, { ...bookings, returned_copies: before.returned_copies + 1 });
    return { reason: copy_returned };
  }
  await note(tx, attempt, bookings);
  if (!is_new) return 'known';
  if (attempt.status !== 'failed') {
    await applyOutcome(tx, payout, attempt, outcome);
    return 'applied';
  }
  await updateAttempt(tx, attempt.id, { status: 'returned' });
  return 'known';
}

const copy_returned =
  'A second copy of the payment came back, as far as is known: the payout stays as it is. If it was the only payment, record that with mark_returned, or with mark_failed while the payout is processing.';

/** Returns the bookings that are known, including one whose reference is not. */
function bookingsOf({ bookings, status }: PayoutAttempt): Bookings {
  const [was_paid, came_back] = [status === 'paid' || status === 'returned', status === 'returned'];
  const { debits = [], returns = [], ...more } = bookings ?? { excess: [], returned_copies: 0 };
  return {
    ...more,
    debits: debits.length === 0 && was_paid ? [''] : debits,
    returns: returns.length === 0 && came_back ? [''] : returns,
  };
}

/** Returns whether a booking is new. One without a reference may be any that is known, and any may be the one that was known without a reference. */
const isNew = (known: string[], references: string[]): boolean =>
  known.length === 0 ||
  (references.length > 0 && !known.includes('') && !references.some((one) => known.includes(one)));

/** A reference takes the place of one that was not known. */
function joined(known: string[], references: string[]): string[] {
  const named = [...new Set([...known, ...references])].filter((one) => one !== '');
  return named.length === 0 ? [''] : named;
}

async function note(tx: Tx, attempt: PayoutAttempt, bookings: Bookings): Promise<void> {
  attempt.bookings = bookings;
  await updateAttempt(tx, attempt.id, { bookings });
}
