/** Settles payouts: paid, failed or returned, by their rail or by a person. The caller has locked them. */
import sql from 'sql-template-tag';
import { type Tx, together } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { type Commission, commissions } from '../commissions/commission.ts';
import { event } from '../events/event.ts';
import { raiseFlag } from '../programs/raise_flag.ts';
import { type Payout, payouts } from './payout.ts';
import { changeCommissions, most_commissions, notedFor } from './payout_commissions.ts';
import { statusAfter } from './payout_state.ts';
import type { PayoutErrorCode } from './rails/rail.ts';
import { freeCommissions } from './release.ts';

export interface Settlement {
  external_id: string | null;
  paid_at: string;
  fee_minor: number | null;
}

export interface Failure {
  error_code: PayoutErrorCode;
  error_message: string;
  /** The amount that was kept of the returned payment. */
  fee_minor?: number | null;
}

export interface Return extends Pick<Failure, 'error_message'> {
  /** The time at which it came back; now when left out. */
  failed_at?: string | undefined;
  /** The part of the amount that was kept. */
  fee_minor?: number | null;
}

/** The status of a failure's payout, or of any other that is given up. */
const not_paid = { paid_at: null, fee_minor: null };
const not_failed = { failed_at: null, error_code: null, error_message: null };

/**
 * Payouts are paid: of each, in the order given, `payout.paid`, then `commission.paid` for each of its commissions, clawbacks too. Several must have no
 * more than `most_commissions` in all, and none of them be in test mode.
 * @throws Problem payout_locked where the status of one does not allow that
 */
export async function settlePaid(
  tx: Tx,
  action: 'succeed' | 'mark_paid',
  settlements: (Settlement & { payout: Payout })[],
): Promise<Payout[]> {
  const [first] = settlements;
  for (const { payout } of settlements) statusAfter(payout, action);
  if (first && isTest(first.payout, action)) return [await endTest(tx, first.payout, endOfTest(first, action))];
  const rows = settlements.map(({ payout: { id }, ...settlement }) => ({ id, ...settlement }));
  const [row] = rows;
  if (first && row && first.payout.commission_count > most_commissions) return [await settleLarge(tx, row)];
  const [paid, settled] = await together([payAll(tx, rows), payCommissions(tx, rows)]);
  const payouts_by_id = new Map(paid.map((payout) => [payout.id, payout]));
  const commissions_by_payout = Map.groupBy(settled, ({ payout_id }) => payout_id);
  return rows.map((settlement) => {
    const payout = payouts_by_id.get(settlement.id) as Payout;
    emitPaid(tx, payout, settlement);
    for (const commission of commissions_by_payout.get(settlement.id) ?? [])
      emitCommissionPaid(tx, commission, settlement);
    return payout;
  });
}

async function settleLarge(tx: Tx, settlement: Settlement & { id: string }): Promise<Payout> {
  const { id, paid_at } = settlement;
  const [paid] = (await payAll(tx, [settlement])) as [Payout];
  emitPaid(tx, paid, settlement);
  await changeCommissions(tx, id, sql`status = 'paid', paid_at = ${paid_at}::timestamptz`, (commission) =>
    emitCommissionPaid(tx, commission, settlement),
  );
  return paid;
}

const endOfTest = (
  { payout, external_id, paid_at, fee_minor }: Settlement & { payout: Payout },
  action: 'succeed' | 'mark_paid',
) => ({ status: statusAfter(payout, action), paid_at, external_id, fee_minor, ...not_failed });

type Settled = Pick<Settlement, 'paid_at'> & { id: string };

function emitPaid(tx: Tx, payout: Payout, { id, paid_at }: Settled): void {
  tx.emit(event('payout.paid', { ...payout, paid_at }));
  tx.enqueue('program/mail_payout_paid', { organization_id: tx.organization_id, id, paid_at });
}

const emitCommissionPaid = (tx: Tx, commission: Commission, { id, paid_at }: Settled): void =>
  tx.emit(event('commission.paid', { ...commission, paid_at, payout_id: id }));

/** Returns whether an outcome is of test mode, in which nobody is paid. A payout that was never sent can be paid outside of Rail in any mode. */
const isTest = ({ livemode, status }: Payout, action: 'succeed' | 'mark_paid'): boolean =>
  !livemode && (action === 'succeed' || status === 'processing');

const payAll = (tx: Tx, settlements: (Settlement & { id: string })[]): Promise<Payout[]> =>
  tx.all<Payout>(sql`
    update program.payout t
    set status = 'paid', paid_at = s.paid_at, external_id = s.external_id, fee_minor = s.fee_minor, livemode = true,
      failed_at = null, error_code = null, error_message = null, updated_at = ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(settlements)}::json) as s (id text, paid_at timestamptz, external_id text, fee_minor bigint)
    where ${tenant(tx)} and t.id = s.id
    returning ${payouts.columns}`);

const payCommissions = (tx: Tx, settlements: (Settlement & { id: string })[]): Promise<Commission[]> =>
  tx.all<Commission>(sql`
    with settled as (
      update program.commission t
      set status = 'paid', paid_at = s.paid_at, updated_at = ${tx.now}::timestamptz
      from json_to_recordset(${JSON.stringify(settlements)}::json) as s (id text, paid_at timestamptz)
      where ${tenant(tx)} and t.payout_id = s.id
        and ${notedFor(tx, sql`l.payout_id = any(${settlements.map(({ id }) => id)})`)}
      returning ${commissions.columns}
    )
    select settled.* from settled order by id`);

/**
 * The payout is not paid, and nothing will be under its key: `payout.failed`. Its commissions stay in it.
 * @throws Problem payout_locked where its status does not allow that
 */
export async function settleFailed(tx: Tx, payout: Payout, failure: Failure): Promise<Payout> {
  const status = statusAfter(payout, 'fail');
  const changes = { status, failed_at: tx.now, ...not_paid, ...failure };
  if (!payout.livemode) return endTest(tx, payout, changes);
  const failed = await payouts.update(tx, payout.id, changes);
  tx.emit(event('payout.failed', failed));
  return failed;
}

/**
 * The payout came back after it was paid, "the one way out of `paid`": `payout.failed` with `returned`, and `commission.updated` for each of
 * its commissions, which are due again and stay in it.
 * @throws Problem payout_locked where its status does not allow that
 */
export async function settleReturned(
  tx: Tx,
  payout: Payout,
  { error_message, failed_at = tx.now, fee_minor = null }: Return,
): Promise<Payout> {
  const status = statusAfter(payout, 'return');
  await numberStatement(tx, payout);
  const returned = await payouts.update(tx, payout.id, {
    ...{ status, failed_at, error_code: 'returned', error_message },
    // The reference is of the payment that came back.
    ...{ paid_at: null, fee_minor, external_id: null },
  });
  tx.emit(event('payout.failed', returned));
  await changeCommissions(tx, payout.id, sql`status = 'due', paid_at = null`, (commission) =>
    tx.emit(event('commission.updated', commission, { previous_status: 'paid' })),
  );
  return returned;
}

/** It was paid, so its statement has a number: it came back before a job gave it one. */
const numberStatement = (tx: Tx, { id, program_id }: Payout) =>
  tx.all(sql`
    select program.number_statements(${tx.organization_id}, ${program_id}, t.id)
    from program.payout t
    where ${tenant(tx)} and t.id = ${id} and t.statement_number is null`);

/**
 * "Payouts of a rail in test mode never count as paid, and free their commissions at the end": nothing but `payout.deleted` is emitted, since
 * for the books there is no such payout. It can still be read.
 */
async function endTest(tx: Tx, payout: Payout, changes: Partial<Payout>): Promise<Payout> {
  const ended = await payouts.update(tx, payout.id, changes);
  tx.emit(event('payout.deleted', ended));
  await freeCommissions(tx, payout);
  return ended;
}

/** Money that left beyond what was owed: it was paid by an earlier attempt, or by hand, or the payout was deleted. */
export interface DoublePayment {
  program_id: string;
  partner_id: string;
  payout_id: string;
  /** The attempt that paid it. */
  attempt_id: string;
  amount_minor: number;
  currency: string;
  /** The payout was deleted before: its commissions are in another, or will be. */
  is_deleted: boolean;
}

/**
 * "A second success, or one after deletion, writes a `clawback` of the excess (`clawback_of` null) and raises the flag `double_payout`."
 * @returns the id of the clawback
 */
export async function takeBackExcess(tx: Tx, excess: DoublePayment): Promise<string> {
  const { program_id, partner_id, payout_id, attempt_id, amount_minor, currency, is_deleted } = excess;
  const cause = is_deleted ? 'Paid after the payout was deleted' : 'Paid twice';
  const commission = (await commissions.insert(tx, {
    ...{ id: newId('com'), program_id, partner_id, kind: 'clawback', amount_minor: -amount_minor, currency },
    ...{ status: 'due', mature_at: tx.now, note: `${cause}: ${payout_id}, attempt ${attempt_id}.` },
  })) as Commission;
  tx.emit(event('commission.created', commission));
  const evidence = { payout_id, attempt_id, amount_minor, currency };
  await raiseFlag(tx, { program_id, partner_id, customer_id: null, kind: 'double_payout', severity: 'high', evidence });
  return commission.id;
}
