/** Settles payouts by what a report says, some in each transaction. */
import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { type AttemptStatus, attemptsWhere, type PayoutAttempt } from '../attempt.ts';
import { type AnyPayout, type AttemptOutcome, applyOutcome, lockPayout } from '../attempt_outcome.ts';
import { most_commissions } from '../payout_commissions.ts';
import type { PayoutStatus } from '../payout_state.ts';
import type { PayoutErrorCode } from '../rails/rail.ts';
import { applyCredit, applyDebit, type Booked } from './bookings.ts';
import { type NotApplied, notApplied, type ReportedPayment, settled_already } from './report_outcomes.ts';

export interface StoredResult {
  applied: { payout_id: string; status: PayoutStatus | 'deleted' }[];
  unchanged: string[];
  not_applied: NotApplied[];
  waiting: number;
  not_of_batch: number;
  accepted_file?: string;
  /** The outcomes that are still to be applied, by payout. */
  left: ReportedPayment[];
}

/** Each takes some statements and events: more would keep a request beyond its deadline. */
const most_at_once = 200;

/** Goes on with a report in a job. */
export async function continueReport(tx: Tx, report_id: string): Promise<void> {
  const report = await tx.maybe<{ result: StoredResult }>(sql`
    select t.result from program.payout_report t where ${tenant(tx)} and t.id = ${report_id} for no key update of t`);
  if (report && report.result.left.length > 0) await applyReport(tx, report_id, report.result, { at_least: 1 });
}

/**
 * Applies what is left, as far as a transaction goes; a job does the rest.
 * @param at_least of how many payouts it is applied however many commissions they have
 */
export async function applyReport(
  tx: Tx,
  report_id: string,
  result: StoredResult,
  { at_least = 0 } = {},
): Promise<void> {
  const { left, ...before } = result;
  const { applied, unchanged, not_applied = [] } = before;
  const after = { ...before, applied: [...applied], unchanged: [...unchanged], not_applied: [...not_applied], left };
  const now = left.slice(0, Math.max(at_least, await fitting(tx, left.slice(0, most_at_once))));
  for (const payment of now) {
    const payout = await lockPayout(tx, payment.payout_id);
    const booked = await apply(tx, payout, payment);
    if (booked === 'applied') after.applied.push({ payout_id: payout.id, status: await statusOf(tx, payout) });
    else if (booked === 'known') after.unchanged.push(payout.id);
    else after.not_applied.push(notApplied({ id: payment.attempt_id, payout_id: payout.id }, booked.reason));
  }
  after.left = left.slice(now.length);
  await tx.all(sql`
    update program.payout_report t set result = ${JSON.stringify(after)} where ${tenant(tx)} and t.id = ${report_id}`);
  if (after.left.length === 0) return;
  const { organization_id, request_id } = tx;
  tx.enqueue('program/apply_bank_report', { organization_id, request_id, id: report_id });
}

/** Returns how many of the first payouts have `most_commissions` in all. */
async function fitting(tx: Tx, reported: ReportedPayment[]): Promise<number> {
  const rows = await tx.all<{ id: string; commission_count: number }>(sql`
    select t.id, t.commission_count from program.payout t where ${tenant(tx)} and t.id = any(${reported.map((one) => one.payout_id)})`);
  const counts = new Map(rows.map(({ id, commission_count }) => [id, commission_count]));
  let commissions = 0;
  const beyond = reported.findIndex(({ payout_id }) => {
    commissions += counts.get(payout_id) as number;
    return commissions > most_commissions;
  });
  return beyond === -1 ? reported.length : beyond;
}

const open: AttemptStatus[] = ['prepared', 'in_doubt', 'processing'];
/** The known states from which a status still changes a payment. One that came back was paid before: a report of that comes late. */
const open_for = { paid: [...open, 'failed'], failed: open };

async function apply(tx: Tx, payout: AnyPayout, payment: ReportedPayment): Promise<Booked> {
  const [attempt] = (await attemptsWhere(tx, sql`t.id = ${payment.attempt_id}`)) as [PayoutAttempt];
  const outcome = outcomeOf(tx, payment);
  const { references, is_duplicate = false } = payment;
  if (references && outcome.status === 'paid')
    return applyDebit(tx, payout, attempt, { references, is_duplicate }, outcome);
  if (references && outcome.status === 'returned')
    return applyCredit(tx, payout, attempt, { references, is_duplicate }, outcome);
  if (outcome.status === 'failed' && attempt.status === 'paid') return { reason: settled_already };
  if (!open_for[payment.outcome as 'paid' | 'failed'].includes(attempt.status)) return 'known';
  await applyOutcome(tx, payout, attempt, outcome);
  return 'applied';
}

async function statusOf(tx: Tx, { id, deleted_at }: AnyPayout): Promise<PayoutStatus | 'deleted'> {
  if (deleted_at !== null) return 'deleted';
  const { status } = await tx.one<{ status: PayoutStatus }>(
    sql`select t.status from program.payout t where ${tenant(tx)} and t.id = ${id}`,
  );
  return status;
}

function outcomeOf(
  tx: Tx,
  { outcome, reference, at, error_code, error_message, fee_minor = null }: ReportedPayment,
): AttemptOutcome {
  if (outcome === 'paid') {
    const paid_at = at !== null && at < tx.now ? at : tx.now;
    return { status: 'paid', reference, paid_at, fee_minor: null };
  }
  const failure = { reference, error_code: error_code as PayoutErrorCode, error_message: error_message as string };
  return { status: outcome, ...failure, fee_minor } as AttemptOutcome;
}
