/** The states of a payout, and the actions that lead from one to another: see README.md. */

import { allows, type State, transition } from '../../core/resource/states.ts';
import { Problem } from '../../core/values/problem.ts';

export type PayoutStatus = 'pending' | 'processing' | 'paid' | 'failed';

export type PayoutAction =
  /** By hand, or when it is due and the program sends automatically. */
  | 'send'
  /** By hand, after a failure: another attempt. */
  | 'retry'
  /** By hand: it was paid outside of Rail. */
  | 'mark_paid'
  /** By hand: the payment came back. */
  | 'mark_returned'
  /** By hand: the bank did not make the payment. */
  | 'mark_failed'
  | 'delete'
  /** Reports of the rail about an attempt. */
  | 'succeed'
  | 'fail'
  | 'return';

export const payout_states: Readonly<Record<PayoutStatus, State<PayoutStatus, PayoutAction>>> = {
  pending: {
    doc: 'not sent yet',
    on: { send: 'processing', mark_paid: 'paid', delete: 'pending' },
    refusal: 'The payout is pending. Only a failed payout can be retried: send it instead.',
  },
  processing: {
    doc: 'sent, and not settled yet',
    on: { mark_paid: 'paid', mark_failed: 'failed', succeed: 'paid', fail: 'failed' },
    refusal: 'The payout is processing. Wait until it is paid or failed.',
  },
  paid: {
    doc: 'settled: the rail confirmed it, or it was marked as paid',
    on: { return: 'failed', mark_returned: 'failed' },
    refusal: 'The payout is already paid.',
  },
  failed: {
    doc: 'rejected or returned by the rail. Its commissions stay in it until it is retried or deleted',
    on: { retry: 'processing', mark_paid: 'paid', delete: 'failed', succeed: 'paid' },
    refusal: 'The payout has failed. Retry it, mark it as paid, or delete it.',
  },
};

/** Changes that a worker makes after the response, where a payout has many commissions. */
export const changes_by_hand = ['mark_paid', 'mark_returned', 'delete'] as const satisfies PayoutAction[];
export type ChangeByHand = (typeof changes_by_hand)[number];

export const in_words: Record<ChangeByHand, string> = {
  mark_paid: 'marked as paid',
  mark_returned: 'marked as returned',
  delete: 'deleted',
};

/** Methods without a rail that confirms: a person says what became of a payout in processing. */
export const methods_by_hand: readonly string[] = ['bank_transfer', 'wire', 'crypto'];

/** Reports of rails apply whatever a person has requested. */
const of_rails: readonly PayoutAction[] = ['succeed', 'fail', 'return'];

/** A payout of a rail in test mode that came to its end holds no commissions any more. */
export const hasEndedTest = ({ status, livemode }: { status: PayoutStatus; livemode: boolean }): boolean =>
  !livemode && (status === 'paid' || status === 'failed');

/**
 * The status that an action leads to.
 * @throws Problem payout_locked: "Anything else: 409"
 */
export function statusAfter(
  payout: { status: PayoutStatus; method: string; livemode: boolean; in_progress?: ChangeByHand | null },
  action: PayoutAction,
): PayoutStatus {
  if (payout.in_progress && !of_rails.includes(action)) {
    throw new Problem('payout_locked', `The payout is being ${in_words[payout.in_progress]}. Wait until it is.`);
  }
  if (hasEndedTest(payout)) {
    throw new Problem(
      'payout_locked',
      'The payout was sent in test mode and has ended: its commissions are due again, and the next batch includes them.',
    );
  }
  const is_outcome = action === 'mark_paid' || action === 'mark_failed';
  if (is_outcome && payout.status === 'processing' && !methods_by_hand.includes(payout.method)) {
    throw new Problem('payout_locked', `The payout was sent, and ${payout.method} will report whether it is paid.`);
  }
  return transition(payout_states, payout.status, action, 'payout_locked');
}

export const allowsAction = (status: PayoutStatus, action: PayoutAction): boolean =>
  allows(payout_states, status, action);

/** The key of the job that makes a change by hand. */
export const keyOfChange = (payout_id: string): string => `change:${payout_id}`;
