/** Settles payouts by what a report says, some in each transaction. */
import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { type AttemptStatus, attemptsWhere, type PayoutAttempt } from '../attempt.ts';
import { type AttemptOutcome, applyOutcome, lockPayout } from '../attempt_outcome.ts';
import { most_commissions } from '../payout_commissions.ts';
import type { PayoutStatus } from '../payout_state.ts';
import type { PayoutErrorCode } from '../rails/rail.ts';
import type { NotApplied, Told } from './report_outcomes.ts';

export interface StoredResult {
  applied: { payout_id: string; status: PayoutStatus | 'deleted' }[];
  unchanged: string[];
  not_applied: NotApplied[];
  waiting: number;
  not_of_batch: number;
  /** What is still to be applied, by payout. */
  left: Told[];
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
  const after: StoredResult = { ...before, applied: [...before.applied], unchanged: [...before.unchanged], left };
  const now = left.slice(0, Math.max(at_least, await fitting(tx, left.slice(0, most_at_once))));
  for (const told of now) {
    const status = await apply(tx, told);
    if (status) after.applied.push({ payout_id: told.payout_id, status });
    else after.unchanged.push(told.payout_id);
  }
  after.left = left.slice(now.length);
  await tx.all(sql`
    update program.payout_report t set result = ${JSON.stringify(after)} where ${tenant(tx)} and t.id = ${report_id}`);
  if (after.left.length === 0) return;
  const { organization_id, request_id } = tx;
  tx.enqueue('program/apply_bank_report', { organization_id, request_id, id: report_id });
}

/** How many of the first payouts have `most_commissions` in all. */
async function fitting(tx: Tx, told: Told[]): Promise<number> {
  const rows = await tx.all<{ id: string; commission_count: number }>(sql`
    select t.id, t.commission_count from program.payout t where ${tenant(tx)} and t.id = any(${told.map((one) => one.payout_id)})`);
  const counts = new Map(rows.map(({ id, commission_count }) => [id, commission_count]));
  let commissions = 0;
  const beyond = told.findIndex(({ payout_id }) => {
    commissions += counts.get(payout_id) as number;
    return commissions > most_commissions;
  });
  return beyond === -1 ? told.length : beyond;
}

/** What a payment may still become, from what it is known to be. What came back was paid before: a report of that comes late. */
const open: AttemptStatus[] = ['prepared', 'in_doubt', 'processing'];
const open_for: Record<Told['outcome'], AttemptStatus[]> = {
  paid: [...open, 'failed'],
  failed: [...open, 'paid'],
  returned: [...open, 'paid'],
};

/** @returns what the payout is then. Undefined where nothing changed */
async function apply(tx: Tx, told: Told): Promise<PayoutStatus | 'deleted' | undefined> {
  const payout = await lockPayout(tx, told.payout_id);
  const [attempt] = (await attemptsWhere(tx, sql`t.id = ${told.attempt_id}`)) as [PayoutAttempt];
  if (!open_for[told.outcome].includes(attempt.status)) return undefined;
  await applyOutcome(tx, payout, attempt, outcomeOf(tx, told));
  if (payout.deleted_at !== null) return 'deleted';
  const { status } = await tx.one<{ status: PayoutStatus }>(
    sql`select t.status from program.payout t where ${tenant(tx)} and t.id = ${told.payout_id}`,
  );
  return status;
}

function outcomeOf(
  tx: Tx,
  { outcome, reference, at, error_code, error_message, fee_minor = null }: Told,
): AttemptOutcome {
  if (outcome === 'paid') {
    const paid_at = at !== null && at < tx.now ? at : tx.now;
    return { status: 'paid', reference, paid_at, fee_minor: null };
  }
  return {
    status: outcome,
    reference,
    error_code: error_code as PayoutErrorCode,
    error_message: error_message as string,
    fee_minor,
  };
}
