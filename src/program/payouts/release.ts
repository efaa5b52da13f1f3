/** Payouts that are given up, and commissions that leave their payout. Locks: payouts by id, then commissions. */
import sql, { type Sql } from 'sql-template-tag';
import { LostRace } from '../../core/postgres/errors.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { ofPayout } from '../commissions/commission.ts';
import { voidCommissions } from '../commissions/commission_void.ts';
import { followDisputesOf } from '../commissions/disputed.ts';
import { event } from '../events/event.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { minimumOf } from './eligibility.ts';
import { type Payout, payouts } from './payout.ts';
import { changeInPages } from './payout_commissions.ts';

/**
 * Deletes a payout, which the caller has locked: `payout.deleted`; its commissions are `due` and free. Those of a partner who is deleted are
 * voided, but for clawbacks. The row is kept for the books.
 */
export async function deletePayout(tx: Tx, payout: Payout): Promise<void> {
  await payouts.update(tx, payout.id, { deleted_at: tx.now, in_progress: null });
  tx.emit(event('payout.deleted', payout));
  await freeCommissions(tx, payout);
}

/** Its change is not made any more where it was to be deleted; what was paid otherwise stays. */
const mayBeDeleted = ({ status, in_progress }: Payout): boolean =>
  status === 'pending' && (in_progress ?? 'delete') === 'delete';

/**
 * Deletes the payouts of a partner that were not sent yet, until `most` commissions are freed. Those that were are waited for: what gives them up
 * at this time either finds the partner deleted, or has freed their commissions by then.
 * @param at_least how many are deleted however many commissions they have
 * @returns how many commissions were freed; `most` where there are more payouts
 */
export async function deletePendingPayouts(
  tx: Tx,
  partner_id: string,
  most: number,
  at_least: number,
): Promise<number> {
  const unsettled = await tx.all<Payout>(sql`
    select ${payouts.columns}
    from ${payouts.from}
    where ${tenant(tx)} and ${payouts.alive} and t.partner_id = ${partner_id} and t.status <> 'paid'
    order by t.id
    for no key update of t`);
  let freed = 0;
  for (const [at, payout] of unsettled.filter(mayBeDeleted).entries()) {
    if (at >= at_least && freed + payout.commission_count > most) return most;
    await deletePayout(tx, payout);
    freed += payout.commission_count;
  }
  return freed;
}

/**
 * Makes the commissions of a payout free for the next batch. They were `due` in it, and stay so. "Partners that are deleted lose what is freed",
 * and what was to be clawed back of it: clawbacks of what was paid stay.
 */
export async function freeCommissions(tx: Tx, { id, partner_id }: Payout): Promise<void> {
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  await changeInPages(tx, id, sql`payout_id = null`, async (freed) => {
    await followDisputesOf(tx, freed);
    if (partner) return;
    const earned = freed.filter(({ amount_minor }) => amount_minor > 0);
    const ids = earned.map((commission) => commission.id);
    const sale_ids = earned.flatMap(({ sale_id }) => sale_id ?? []);
    const corrects = sql`t.sale_id = any(${sale_ids}) and t.clawback_of = any(${ids}) and t.payout_id is null`;
    await voidCommissions(tx, sql`(t.id = any(${ids}) or ${corrects})`, 'partner_deleted');
  });
}

/**
 * "A refund, correction or deletion of a sale first takes an unpaid commission out of a `pending` payout that was never attempted, whose amount
 * follows in the same transaction (nothing left: the payout is deleted)." So it is where less than the minimum is left. A clawback stays in its payout: without it the amount would grow.
 * @param which the commissions, called `t`
 */
export async function takeOutOfPayouts(tx: Tx, which: Sql): Promise<void> {
  for (const payout of await lockUntried(tx, which)) await takeOut(tx, payout, which);
  await refuseLostRace(tx, which);
}

/** Never attempted, and not said to be paid otherwise: its amount may still change. */
const untried = sql`t.status = 'pending' and t.attempt = 0 and t.in_progress is null`;

/**
 * A batch may have put a commission into a payout since the look above, and committed while this waited for the commission. From now on none
 * can. @throws LostRace: run again, the transaction finds the payout
 */
async function refuseLostRace(tx: Tx, which: Sql): Promise<void> {
  const locked = await tx.all<{ payout_id: string | null }>(sql`
    select t.payout_id
    from program.commission t
    where ${tenant(tx)} and ${which} and t.kind <> 'clawback'
    order by t.id
    for no key update of t`);
  const payout_ids = locked.map(({ payout_id }) => payout_id).filter((id) => id !== null);
  if (payout_ids.length === 0) return;
  const found = await tx.maybe(sql`
    select from ${payouts.from}
    where ${tenant(tx)} and ${payouts.alive} and t.id = any(${payout_ids}) and ${untried}
    limit 1`);
  if (found) throw new LostRace('A batch has put a commission into a payout meanwhile.');
}

/** The payouts, not yet sent, that hold such commissions, locked in the order of their ids. */
const lockUntried = (tx: Tx, which: Sql): Promise<Payout[]> =>
  tx.all<Payout>(sql`
    select ${payouts.columns}
    from ${payouts.from}
    where ${tenant(tx)} and ${payouts.alive} and ${untried} and t.id in (
      select t.payout_id
      from program.commission t
      where ${tenant(tx)} and ${which} and t.payout_id is not null and t.kind <> 'clawback'
    )
    order by t.id
    for no key update of t`);

async function takeOut(tx: Tx, payout: Payout, which: Sql): Promise<void> {
  const taken = await tx.one<{ commissions: number; amount_minor: number }>(sql`
    with leaving as (
      select t.id
      from program.commission t
      where ${tenant(tx)} and ${ofPayout(payout.id)} and ${which} and t.kind <> 'clawback'
      order by t.id
      for no key update
    ),
    taken as (
      update program.commission t
      set payout_id = null, updated_at = ${tx.now}::timestamptz
      from leaving
      where ${tenant(tx)} and t.id = leaving.id
      returning t.amount_minor
    )
    select count(*) as commissions, coalesce(sum(amount_minor), 0)::bigint as amount_minor from taken`);
  const amount_minor = payout.amount_minor - taken.amount_minor;
  const commission_count = payout.commission_count - taken.commissions;
  if (amount_minor >= (await leastOf(tx, payout)))
    await payouts.update(tx, payout.id, { amount_minor, commission_count });
  else await deletePayout(tx, payout);
}

/** The least that a batch would pay today in its place. */
async function leastOf(tx: Tx, { program_id, partner_id, currency }: Payout): Promise<number> {
  const program = await programs.get(tx, program_id);
  const partner = await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`);
  return minimumOf(partner ?? { min_payout_minor: null }, currency, program);
}
