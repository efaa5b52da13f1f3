import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { open_attempt } from './attempt.ts';
import type { Payout } from './payout.ts';
import { rail_names } from './rails/rail.ts';

/** The time for which a rail's word that nothing was paid is valid. */
const fresh = '15 minutes';

/**
 * A payout fails while one of its attempts is open where an earlier attempt succeeded late and came back. What the open one comes to decides.
 * @throws Problem payout_locked
 */
export async function refuseOpenAttempt(tx: Tx, { id, status }: Payout): Promise<void> {
  if (status !== 'failed') return;
  const open = await tx.maybe<{ id: string }>(sql`
    select t.id
    from program.payout_attempt t
    where ${tenant(tx)} and t.payout_id = ${id} and ${open_attempt}
    limit 1`);
  if (open)
    throw new Problem('payout_locked', `The attempt ${open.id} can still be paid. Wait until it is paid or failed.`);
}

/** The failed payouts of which an attempt is still open. */
export async function withOpenAttempt(tx: Tx, failed: Payout[]): Promise<Set<string>> {
  const open = await tx.all<{ payout_id: string }>(sql`
    select distinct t.payout_id
    from program.payout_attempt t
    where ${tenant(tx)} and t.payout_id = any(${failed.map(({ id }) => id)}) and ${open_attempt}`);
  return new Set(open.map(({ payout_id }) => payout_id));
}

/**
 * "DELETE, after a look-up at the rail": what a provider was asked to pay is given up only when a look-up after the failure found it unpaid.
 * Else a look-up is requested, and the caller asked to come back.
 * @throws Problem payout_locked, which keeps the request for the look-up
 */
export async function confirmNotPaid(tx: Tx, payout: Payout): Promise<void> {
  const unconfirmed = await tx.maybe(sql`
    select
    from program.payout_attempt t
    where ${tenant(tx)} and t.payout_id = ${payout.id} and t.rail = any(${[...rail_names]})
      and coalesce(t.looked_up_at, '-infinity') < greatest(t.ended_at, ${tx.now}::timestamptz - ${fresh}::interval)`);
  if (!unconfirmed) return;
  await tx.all(sql`
    update program.payout_attempt t set next_poll_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.payout_id = ${payout.id} and t.rail = any(${[...rail_names]})`);
  tx.enqueue('program/poll_payout', { organization_id: tx.organization_id, id: payout.id });
  throw new Problem(
    'payout_locked',
    'The rail is being asked whether the payout was paid. Try again in a few seconds.',
    {
      headers: { 'Retry-After': '5' },
      keep_effects: true,
    },
  );
}
