/** The states of a commission, and the actions that lead from one to another: see README.md. */

import { raw, type Sql } from 'sql-template-tag';
import { type State, statusesThat } from '../../core/resource/states.ts';

export type CommissionStatus = 'pending' | 'approved' | 'due' | 'on_hold' | 'paid' | 'voided' | 'rejected';

export type CommissionAction =
  /** Its holding period ends: the scheduled job. */
  | 'mature'
  /** By hand. */
  | 'approve'
  | 'edit'
  | 'reject'
  | 'delete'
  /** By hand, and when a dispute of its sale is opened and closed. A release leads to where it would be without the hold: `releasedTo`. */
  | 'hold'
  | 'release'
  /** By hand, when its sale is refunded or corrected, and when its partner is deleted. */
  | 'void'
  /** Its payout settles. */
  | 'pay'
  /** Its payout comes back: "only its payout's return makes `paid` `due` again". */
  | 'return';

interface CommissionState extends State<CommissionStatus, CommissionAction> {
  /** True if it is part of the amount that the partner is owed or was paid. */
  counted: boolean;
}

const open = (status: CommissionStatus) =>
  ({ edit: status, reject: 'rejected', delete: status, void: 'voided' }) as const;

const final = (status: CommissionStatus) => ({
  on: {},
  refusal: `The commission is ${status}. Only a pending, approved, due or held commission can be changed.`,
});

export const commission_states: Readonly<Record<CommissionStatus, CommissionState>> = {
  pending: {
    doc: 'in the holding period',
    on: { ...open('pending'), approve: 'approved', mature: 'due', hold: 'on_hold' },
    counted: true,
  },
  approved: {
    doc: 'in the holding period, and approved by hand',
    on: { ...open('approved'), mature: 'due', hold: 'on_hold' },
    refusal: 'The commission is already approved. Only a pending commission can be approved.',
    counted: true,
  },
  due: {
    doc: 'the holding period is over, and the commission waits for a payout',
    on: { ...open('due'), pay: 'paid', hold: 'on_hold' },
    refusal: 'The commission is already due. Only a pending commission can be approved.',
    counted: true,
  },
  on_hold: {
    doc: 'not paid until it is released, whatever its `mature_at`',
    on: { ...open('on_hold'), release: 'due' },
    refusal: 'The commission is on hold. Release it first.',
    counted: true,
  },
  paid: { doc: 'paid by a payout', ...final('paid'), on: { return: 'due' }, counted: true },
  voided: { doc: 'cancelled, for example because its sale was refunded', ...final('voided'), counted: false },
  rejected: { doc: 'rejected by hand', ...final('rejected'), counted: false },
};

/** Returns whether a commission can still change by itself: it is unpaid, and neither voided nor rejected. */
export const isOpen = (status: CommissionStatus): boolean => commission_states[status].on.void !== undefined;

/** `pending` in the holding period, `due` when that is over. */
export const statusAt = (mature_at: string, now: string): CommissionStatus => (mature_at <= now ? 'due' : 'pending');

/** The fields of a commission that says why it is on hold, once it is not. */
export const not_on_hold = { hold_reason: null, held_at: null };

/** Returns the status after a release: `due` if the holding period is over, else the one before the hold. */
export const releasedTo = (
  { mature_at, approved_at }: { mature_at: string; approved_at: string | null },
  now: string,
): CommissionStatus => {
  const status = statusAt(mature_at, now);
  return status === 'pending' && approved_at !== null ? 'approved' : status;
};

/** The list of an SQL `in`, in literals: Postgres uses a partial index over these statuses for literals alone. */
const listOf = (statuses: CommissionStatus[]): Sql => raw(`(${statuses.map((status) => `'${status}'`).join(', ')})`);

/** Lists of statuses for conditions on a commission's status in SQL. */
export const open_statuses = listOf(statusesThat(commission_states, 'void'));
export const maturing_statuses = listOf(statusesThat(commission_states, 'mature'));
/** For `not in`, as the partial indexes have it. */
export const uncounted_statuses = listOf(
  (Object.keys(commission_states) as CommissionStatus[]).filter((status) => !commission_states[status].counted),
);

const dayMs = 86_400_000;

/**
 * Returns the time at which a commission matures: the sale's moment and holding_period_days days of 24 hours. "Every commission is written with its
 * `mature_at` at creation."
 * @throws RangeError when occurred_at is not a timestamp
 */
export const matureAt = (occurred_at: string, holding_period_days: number): string =>
  new Date(Date.parse(occurred_at) + holding_period_days * dayMs).toISOString();
