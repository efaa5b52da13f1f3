import sql, { join, raw, type Sql } from 'sql-template-tag';
import { declareUnique } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { PayoutErrorCode, RailMode } from './rails/rail.ts';

declareUnique('payout_attempt', { payout_attempt_number_unique: null });

/** The `last_answer` of an attempt whose payout a person marked as paid. */
export const by_hand = 'marked as paid';

export type AttemptStatus = 'prepared' | 'in_doubt' | 'processing' | 'paid' | 'failed' | 'returned';

/** Selects attempts, called `t`, that can still be paid. */
export const open_attempt = sql`t.status in ('prepared', 'in_doubt', 'processing')`;

export const isOpen = (status: AttemptStatus): boolean => ['prepared', 'in_doubt', 'processing'].includes(status);

/** The bank's bookings of an attempt. A reference of '' is one that is not known: it may be any. */
export interface Bookings {
  debits: string[];
  returns: string[];
  /** Clawbacks of what was executed more than twice. */
  excess: string[];
  /** The number of returned duplicates whose debits are not known yet. */
  returned_copies: number;
}

/** A payout as it was sent once. */
export interface PayoutAttempt {
  /** The idempotency key: `<payout id>-<number>`. */
  id: string;
  payout_id: string;
  program_id: string;
  number: number;
  rail: string;
  mode: RailMode;
  credentials_version: number | null;
  amount_minor: number;
  currency: string;
  /** Encrypted for `id`. */
  request: Buffer;
  state: Record<string, string>;
  status: AttemptStatus;
  reference: string | null;
  error_code: PayoutErrorCode | null;
  began_at: string;
  ended_at: string | null;
  last_sent_at: string | null;
  last_answer: string | null;
  polls: number;
  settled: boolean;
  excess_commission_id: string | null;
  bookings: Bookings | null;
  owner_notified_at: string | null;
}

/** The columns of attempts, called `t`. */
export const attemptColumns = raw(
  'id payout_id program_id number rail mode credentials_version amount_minor currency request state status reference error_code began_at ended_at last_sent_at last_answer polls settled excess_commission_id bookings owner_notified_at'
    .split(' ')
    .map((column) => `t.${column}`)
    .join(', '),
);

/** Attempts, called `t`, in the order of their ids. Lock their payouts before. */
export const attemptsWhere = (tx: Tx, where: Sql): Promise<PayoutAttempt[]> =>
  tx.all<PayoutAttempt>(sql`
    select ${attemptColumns} from program.payout_attempt t where ${tenant(tx)} and ${where} order by t.payout_id, t.number for no key update of t`);

/** Ends attempts by hand. A person who marks a payout as paid means the transfer in the bank's file: the bank's report of it changes nothing any more. */
export async function endAttemptsByHand(
  tx: Tx,
  marked: { id: string; attempt: number; status: string }[],
): Promise<void> {
  const ids = marked.filter(({ status }) => status === 'processing').map(({ id, attempt }) => `${id}-${attempt}`);
  if (ids.length === 0) return;
  await tx.all(sql`
    update program.payout_attempt t
    set status = 'paid', settled = true, last_answer = ${by_hand}, ended_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.id = any(${ids})`);
}

/** The columns of an attempt that change. */
export type AttemptChanges = Partial<
  Omit<
    PayoutAttempt,
    'id' | 'payout_id' | 'program_id' | 'number' | 'rail' | 'mode' | 'amount_minor' | 'currency' | 'request'
  >
> & {
  error_message?: string | null;
  next_poll_at?: string | null;
  looked_up_at?: string;
  claimed_until?: string | null;
};

export async function updateAttempt(tx: Tx, id: string, changes: AttemptChanges): Promise<void> {
  await tx.all(attemptUpdate(tx, id, changes));
}

/** The statement of `updateAttempt`. */
export function attemptUpdate(tx: Tx, id: string, changes: AttemptChanges): Sql {
  const settings = Object.entries(changes).map(([column, value]) =>
    column === 'state' || column === 'bookings'
      ? sql`${raw(column)} = ${JSON.stringify(value)}`
      : sql`${raw(column)} = ${value}`,
  );
  return sql`update program.payout_attempt t set ${join(settings)} where ${tenant(tx)} and t.id = ${id}`;
}
