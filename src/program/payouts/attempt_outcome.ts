/** Applies the outcome of an attempt, from a rail or a bank's report, to its payout: see README.md. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { because, type Commission, commissions } from '../commissions/commission.ts';
import { isOpen } from '../commissions/commission_state.ts';
import { voidCommission } from '../commissions/commission_void.ts';
import { event } from '../events/event.ts';
import { partners } from '../partners/partner.ts';
import { type AttemptStatus, attemptsWhere, by_hand, type PayoutAttempt, updateAttempt } from './attempt.ts';
import { type Payout, payouts } from './payout.ts';
import { allowsAction, hasEndedTest } from './payout_state.ts';
import type { PayoutErrorCode } from './rails/rail.ts';
import { settleFailed, settlePaid, settleReturned, takeBackExcess } from './settle.ts';

/** Terminal, or a return after that. */
export type AttemptOutcome =
  | { status: 'paid'; reference: string | null; paid_at: string; fee_minor: number | null }
  | NotPaid<'failed'>
  | NotPaid<'returned'>;

interface NotPaid<Status extends 'failed' | 'returned'> {
  status: Status;
  reference: string | null;
  error_code: PayoutErrorCode;
  error_message: string;
  /** The amount that was kept of the returned payment. */
  fee_minor?: number | null;
}

/** A payout, deleted or not. */
export type AnyPayout = Payout & { deleted_at: string | null };

/** The payouts of attempts, locked in the order of their ids. */
export const lockPayouts = (tx: Tx, payout_ids: string[]): Promise<AnyPayout[]> =>
  tx.all<AnyPayout>(sql`
    select ${payouts.columns}, t.deleted_at from ${payouts.from} where ${tenant(tx)} and t.id = any(${payout_ids}) order by t.id for no key update of t`);

/** The payout of an attempt, locked. @throws Error where there is none */
export async function lockPayout(tx: Tx, payout_id: string): Promise<AnyPayout> {
  const [payout] = await lockPayouts(tx, [payout_id]);
  if (!payout) throw new Error(`The payout ${payout_id} does not exist.`);
  return payout;
}

/**
 * Writes what became of an attempt, and settles its payout where that follows. The caller has locked both, the payout first. What is known
 * already changes nothing.
 * @returns the attempt's status then
 */
export async function applyOutcome(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  outcome: AttemptOutcome,
): Promise<AttemptStatus> {
  // A person knows of another payment than the one that failed: "the one way out of `paid`" is a return.
  if (outcome.status === 'failed' && attempt.last_answer === by_hand) return attempt.status;
  if (outcome.status === 'paid') return applyPaid(tx, payout, attempt, outcome);
  if (attempt.status === 'paid') return applyReturn(tx, payout, attempt, outcome);
  return applyFailure(tx, payout, attempt, outcome);
}

async function applyPaid(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  { reference, paid_at, fee_minor }: AttemptOutcome & { status: 'paid' },
): Promise<'paid'> {
  if (attempt.status === 'paid') return 'paid';
  const settles = isSettledBySuccess(payout);
  const excess_commission_id =
    settles || attempt.mode === 'test' ? null : await takeBackExcess(tx, excessOf(attempt, payout));
  await updateAttempt(tx, attempt.id, {
    ...{ status: 'paid', reference, error_code: null, error_message: null, ended_at: tx.now },
    ...{ settled: settles, excess_commission_id },
  });
  if (settles) await settlePaid(tx, 'succeed', [{ payout, external_id: reference, paid_at, fee_minor }]);
  return 'paid';
}

/** Returns whether a success of its rail pays the payout: else it paid more than was owed. */
export const isSettledBySuccess = (payout: AnyPayout): boolean =>
  payout.deleted_at === null && !hasEndedTest(payout) && allowsAction(payout.status, 'succeed');

const excessOf = (
  { id, program_id, payout_id, amount_minor, currency }: PayoutAttempt,
  { partner_id, deleted_at }: AnyPayout,
) => ({
  ...{ program_id, partner_id, payout_id, attempt_id: id, amount_minor, currency, is_deleted: deleted_at !== null },
});

/** The bank has executed a payment once more: what came back is paid again, and more is taken back. */
export async function applyCopy(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  outcome: AttemptOutcome & { status: 'paid' },
): Promise<void> {
  if (attempt.status !== 'paid') await applyPaid(tx, payout, attempt, outcome);
  else if (attempt.mode === 'live') await noteExcess(tx, attempt, await takeBackExcess(tx, excessOf(attempt, payout)));
}

const noteExcess = (tx: Tx, { id, excess_commission_id, bookings }: PayoutAttempt, clawback_id: string) =>
  updateAttempt(
    tx,
    id,
    excess_commission_id === null || bookings === null
      ? { excess_commission_id: clawback_id }
      : { bookings: { ...bookings, excess: [...bookings.excess, clawback_id] } },
  );

/** Paid attempts, called `t`, of a payout of which one or more paid beyond it. */
const withExcess = (tx: Tx, payout_id: string): Promise<PayoutAttempt[]> =>
  attemptsWhere(tx, sql`t.payout_id = ${payout_id} and t.status = 'paid' and t.excess_commission_id is not null`);

/** Counts the payments of a payout by its rail, less those that came back. */
export async function paymentsOf(tx: Tx, payout_id: string): Promise<number> {
  const paid = await attemptsWhere(tx, sql`t.payout_id = ${payout_id} and t.status = 'paid'`);
  return paid.reduce((sum, { settled, excess_commission_id, bookings }) => {
    const more = bookings?.excess.length ?? 0;
    return sum + Number(settled) + Number(excess_commission_id !== null) + more;
  }, 0);
}

/**
 * "A return after days is a failure with `returned`." Of several payments of a payout the return of one is that of the excess, which is no
 * longer taken back: the payout stays paid by what is left.
 */
async function applyReturn(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  { error_code, error_message, fee_minor }: AttemptOutcome & { status: 'failed' | 'returned' },
): Promise<AttemptStatus> {
  const is_one_of_several = attempt.settled ? attempt.excess_commission_id !== null : attempt.bookings?.excess.length;
  if (is_one_of_several) {
    await forgiveOne(tx, attempt);
    return 'paid';
  }
  await updateAttempt(tx, attempt.id, { status: 'returned', error_code, error_message, ended_at: tx.now });
  if (attempt.excess_commission_id !== null) await forgiveExcess(tx, attempt.excess_commission_id);
  else if (attempt.settled && payout.status === 'paid' && payout.livemode) {
    const [other] = await withExcess(tx, payout.id);
    if (other) await settleByOther(tx, payout, other);
    else await settleReturned(tx, payout, { error_message, fee_minor });
  }
  return 'returned';
}

async function settleByOther(tx: Tx, payout: AnyPayout, other: PayoutAttempt): Promise<void> {
  await forgiveOne(tx, other);
  await updateAttempt(tx, other.id, { settled: true });
  await payouts.update(tx, payout.id, { external_id: other.reference });
}

/** Forgives one payment that an attempt made beyond its payout, because it came back. */
async function forgiveOne(tx: Tx, { id, excess_commission_id, bookings }: PayoutAttempt): Promise<void> {
  const last = bookings?.excess.at(-1);
  await forgiveExcess(tx, last ?? (excess_commission_id as string));
  await updateAttempt(
    tx,
    id,
    bookings && last
      ? { bookings: { ...bookings, excess: bookings.excess.slice(0, -1) } }
      : { excess_commission_id: null },
  );
}

async function forgiveExcess(tx: Tx, commission_id: string): Promise<void> {
  const clawback = await commissions.find(tx, sql`${tenant(tx)} and t.id = ${commission_id}`, lockOf(true));
  // Somebody has forgiven it by hand.
  if (!clawback) return;
  if (isOpen(clawback.status) && clawback.payout_id === null) {
    because(tx, 'payout_returned');
    await voidCommission(tx, clawback, 'payout_returned', { edited_by_hand: true });
    return;
  }
  if (clawback.status === 'voided' || clawback.status === 'rejected') return;
  // A partner who is deleted is owed nothing more.
  if (!(await partners.find(tx, sql`${tenant(tx)} and t.id = ${clawback.partner_id}`))) return;
  const { program_id, partner_id, amount_minor, currency } = clawback;
  const bonus = (await commissions.insert(tx, {
    ...{ id: newId('com'), program_id, partner_id, kind: 'bonus', amount_minor: -amount_minor, currency },
    ...{ status: 'due', mature_at: tx.now, note: `The payment that ${commission_id} took back was returned.` },
  })) as Commission;
  tx.emit(event('commission.created', bonus));
}

async function applyFailure(
  tx: Tx,
  payout: AnyPayout,
  attempt: PayoutAttempt,
  {
    status,
    reference,
    error_code,
    error_message,
    fee_minor = null,
  }: AttemptOutcome & { status: 'failed' | 'returned' },
): Promise<AttemptStatus> {
  if (attempt.status === 'failed' || attempt.status === 'returned') return attempt.status;
  await updateAttempt(tx, attempt.id, { status, reference, error_code, error_message, ended_at: tx.now });
  const is_current = payout.deleted_at === null && payout.status === 'processing' && payout.attempt === attempt.number;
  if (is_current) await settleFailed(tx, payout, { error_code, error_message, fee_minor });
  return status;
}
