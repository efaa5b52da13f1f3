/** Changes payouts by hand: at once, or by a worker where a payout has many commissions. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { Problem } from '../../../core/values/problem.ts';
import { attemptsWhere, endAttemptsByHand, type PayoutAttempt } from '../attempt.ts';
import { applyOutcome } from '../attempt_outcome.ts';
import { refuseOpenAttempt } from '../last_attempt.ts';
import { type Payout, payouts } from '../payout.ts';
import { most_commissions } from '../payout_commissions.ts';
import { keyOfChange, statusAfter } from '../payout_state.ts';
import { deletePayout } from '../release.ts';
import { settlePaid, settleReturned } from '../settle.ts';

export const Change = z.discriminatedUnion('action', [
  z.object({ action: z.literal('mark_paid'), external_id: z.string().nullable(), paid_at: z.string() }),
  z.object({
    ...{ action: z.literal('mark_returned'), reason: z.string(), returned_at: z.string() },
    fee_minor: z.number().nullable(),
  }),
  z.object({ action: z.literal('delete') }),
]);
export type Change = z.infer<typeof Change>;

/** In half an hour or so. Then the payout is freed: see give_up.ts. */
const most_attempts = 8;

/**
 * Makes a change that was found to be allowed, of a payout that the caller has locked. One of many commissions is left to a worker: they would
 * keep the request beyond its deadline.
 * @returns the payout as it is then
 */
export async function changed(tx: Tx, payout: Payout, change: Change): Promise<Payout> {
  if (payout.commission_count <= most_commissions) return make(tx, payout, change);
  const { organization_id, request_id } = tx;
  const job = { job_key: keyOfChange(payout.id), max_attempts: most_attempts };
  tx.enqueue(
    'program/change_payout',
    { organization_id, request_id, id: payout.id, change, status: payout.status },
    job,
  );
  return payouts.update(tx, payout.id, { in_progress: change.action });
}

/**
 * Makes a change that was left to a worker, unless a rail has said meanwhile what became of the payout.
 * @param status of the payout when the change was requested
 */
export async function makeLater(tx: Tx, payout_id: string, change: Change, status: string): Promise<void> {
  const payout = await payouts.find(tx, sql`${tenant(tx)} and t.id = ${payout_id}`, sql`for no key update of t`);
  if (payout?.in_progress !== change.action) return;
  const free = await payouts.update(tx, payout_id, { in_progress: null });
  if (free.status !== status) return;
  try {
    statusAfter(free, change.action);
    await refuseOpenAttempt(tx, free);
    if (change.action === 'mark_returned') await refusePaidTwice(tx, free);
  } catch (error) {
    if (error instanceof Problem) return;
    throw error;
  }
  await make(tx, free, change);
}

async function make(tx: Tx, payout: Payout, change: Change): Promise<Payout> {
  if (change.action === 'mark_paid') return (await markPaid(tx, [payout], change))[0] as Payout;
  if (change.action === 'mark_returned') return markReturned(tx, payout, change);
  await deletePayout(tx, payout);
  return payout;
}

/**
 * Payouts were paid outside of Rail: as many as are settled in one go.
 * @param change `external_id`: null where the payment has no id but that of its attempt
 */
export async function markPaid(
  tx: Tx,
  marked: Payout[],
  { external_id, paid_at }: Pick<Change & { action: 'mark_paid' }, 'external_id' | 'paid_at'>,
): Promise<Payout[]> {
  await endAttemptsByHand(tx, marked);
  const paid = (payout: Payout) => ({
    payout,
    external_id: external_id ?? payout.external_id,
    paid_at,
    fee_minor: null,
  });
  return settlePaid(tx, 'mark_paid', marked.map(paid));
}

/** The bank did not make the payment that it was sent: it fails as one that the bank rejects. */
export async function markFailed(tx: Tx, payout: Payout, reason: string): Promise<Payout> {
  const [attempt] = (await attemptsWhere(tx, sql`t.id = ${`${payout.id}-${payout.attempt}`}`)) as [PayoutAttempt];
  const failure = { reference: null, error_code: 'provider_rejected' as const, error_message: reason };
  await applyOutcome(tx, { ...payout, deleted_at: null }, attempt, { status: 'failed', ...failure });
  return (await payouts.find(tx, sql`${tenant(tx)} and t.id = ${payout.id}`)) as Payout;
}

/**
 * Refuses a payout that was paid twice: a person cannot say which of two payments came back. Whoever voids the clawback has said that one did.
 * @throws Problem payout_locked
 */
export async function refusePaidTwice(tx: Tx, { id }: Payout): Promise<void> {
  const excess = await tx.maybe<{ id: string }>(sql`
    select c.id
    from program.payout_attempt t
    join program.commission c on c.organization_id = t.organization_id and c.id = any(
      t.excess_commission_id || array(select jsonb_array_elements_text(t.bookings -> 'excess'))
    )
    where ${tenant(tx)} and t.payout_id = ${id} and t.status = 'paid' and t.excess_commission_id is not null
      and c.deleted_at is null and c.status not in ('voided', 'rejected')
    limit 1`);
  if (!excess) return;
  throw new Problem(
    'payout_locked',
    `The payout was paid twice, and the clawback ${excess.id} takes the second payment back. If one of them came back, void that commission: the payout stays paid by the other.`,
  );
}

async function markReturned(
  tx: Tx,
  payout: Payout,
  { reason, returned_at, fee_minor }: Change & { action: 'mark_returned' },
): Promise<Payout> {
  await tx.all(sql`
    update program.payout_attempt t
    set status = 'returned', error_code = 'returned', error_message = ${reason}, ended_at = ${tx.now}::timestamptz,
      bookings = t.bookings || '{"returned_copies": 0}'
    where ${tenant(tx)} and t.payout_id = ${payout.id} and t.status = 'paid' and t.settled`);
  return settleReturned(tx, payout, { error_message: reason, failed_at: returned_at, fee_minor });
}
