import sql from 'sql-template-tag';
import { type HoldState, holdState } from '../../../core/postgres/hold.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { timeOfId } from '../../../core/values/id.ts';
import type { PayoutMethodName, Program } from '../../programs/program.ts';
import { detailsOf } from '../can_pay.ts';
import { currentRail } from '../credentials/rail_credentials.ts';
import type { RailMethod } from '../credentials/rail_method.ts';
import type { HeldReason } from '../eligibility.ts';
import { PayoutFiles } from '../files/freeze.ts';
import type { FileMethod } from '../files/frozen_transfer.ts';
import { withOpenAttempt } from '../last_attempt.ts';
import type { Payout } from '../payout.ts';
import { statusAfter } from '../payout_state.ts';
import type { RailName, Transfer } from '../rails/rail.ts';
import { isRailName } from '../rails/rails.ts';
import { hold } from './hold.ts';
import { DailyLimit } from './limit.ts';
import { notPayable, type PayeeRow, paidBy, payeesOf } from './payee.ts';
import { type Sending, sendByRails } from './send_by_rails.ts';

export interface Held {
  payout: Payout;
  reason: HeldReason;
}

/**
 * Sends payouts of one batch, which the caller has locked: each becomes `processing` with a new attempt, `payout.updated`, and a job calls
 * its rail; what goes by file is frozen in one. The partner is checked again: what cannot be sent stays as it is.
 * @param action what the statuses of all of them allow
 * @param files those that they go into, where others follow: the caller emits their events
 * @returns those that were not sent
 * @throws Problem payout_locked
 */
export async function sendPayouts(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  batch_payouts: Payout[],
  action: 'send' | 'retry',
  files?: PayoutFiles,
): Promise<Held[]> {
  const limit = new DailyLimit(tx, program);
  const railOf = currentRails(tx, program.id);
  const payees = await payeesOf(tx, batch_payouts);
  const open = action === 'retry' ? await withOpenAttempt(tx, batch_payouts) : new Set<string>();
  const approved_only = action === 'send' && (await needsApproval(tx, batch_payouts));
  const restored = await holdState(tx);
  const held: Held[] = [];
  const for_rails: Sending[] = [];
  const for_files: { method: FileMethod; payout: Payout }[] = [];
  for (const payout of batch_payouts) {
    statusAfter(payout, action);
    const payee = payees.get(payout.partner_id);
    const reason =
      (mayBePaid(payout, payee, restored) ? 'service_restored' : undefined) ??
      (open.has(payout.id) ? 'attempt_open' : undefined) ??
      (approved_only ? notApproved(payout, payee) : undefined) ??
      (payee?.held_until && payee.held_until > tx.now ? 'payout_method_changed' : undefined) ??
      (await heldReason(services, program, payout, payee, { limit, railOf }));
    const method = payee?.method as PayoutMethodName;
    if (reason) held.push({ payout: await hold(tx, payout, reason), reason });
    else if (isRailName(method))
      for_rails.push(sendingOf(tx, services, program, payout, payee as PayeeRow, await railOf(method)));
    else for_files.push({ method, payout });
  }
  await sendByRails(tx, services, for_rails);
  const into = files ?? new PayoutFiles(tx, services);
  for (const [method, of_method] of Map.groupBy(for_files, (one) => one.method)) {
    const file_payouts = of_method.map(({ payout }) => payout);
    await into.add((file_payouts[0] as Payout).batch_id, method, file_payouts);
  }
  if (!files) await into.emitUpdates();
  return held;
}

/**
 * After a restore, what was due before it may have been paid: by a payout that is lost, or by a file for the bank. Of a payout that is not lost, a
 * provider is asked by its key.
 */
function mayBePaid(
  { id, period_start }: Payout,
  payee: PayeeRow | undefined,
  { is_held, restored_at, is_compared }: HoldState,
): boolean {
  if (is_held) return true;
  if (is_compared || restored_at === null || period_start >= restored_at) return false;
  const is_known = timeOfId(id) < Date.parse(restored_at);
  return !(is_known && isRailName(payee?.method ?? ''));
}

type CurrentRail = Awaited<ReturnType<typeof currentRail>>;
type RailOf = (method: RailMethod) => Promise<CurrentRail>;

/** The program's credentials by method, each read once. */
function currentRails(tx: Tx, program_id: string): RailOf {
  const known = new Map<RailMethod, Promise<CurrentRail>>();
  return (method) => {
    const rail = known.get(method) ?? currentRail(tx, program_id, method);
    known.set(method, rail);
    return rail;
  };
}

async function needsApproval(tx: Tx, [first]: Payout[]): Promise<boolean> {
  if (!first) return false;
  const { approval_required } = await tx.one<{ approval_required: boolean }>(sql`
    select t.approval_required from program.payout_batch t where ${tenant(tx)} and t.id = ${first.batch_id}`);
  return approval_required;
}

/**
 * Returns whether the payout method changed since the batch was approved: the approval covers the destination. A retry is decided by a person, for
 * each payout: it takes the method that the partner has now.
 */
const notApproved = ({ created_at }: Payout, payee: PayeeRow | undefined): 'destination_not_approved' | undefined =>
  payee?.changed_at && payee.changed_at > created_at ? 'destination_not_approved' : undefined;

async function heldReason(
  services: Pick<Services, 'vault'>,
  program: Program,
  payout: Payout,
  payee: PayeeRow | undefined,
  { limit, railOf }: { limit: DailyLimit; railOf: RailOf },
): Promise<HeldReason | undefined> {
  if (!payee) return 'partner_deleted';
  const reason = notPayable(services, program, payout, payee);
  if (reason) return reason;
  const method = payee.method as PayoutMethodName;
  const rail = method === 'crypto' ? { mode: 'live' } : await railOf(method);
  if (!rail) return 'no_credentials';
  const is_within = rail.mode === 'test' || (await limit.claim(payout.amount_minor, payout.currency));
  return is_within ? undefined : 'limit_reached';
}

function sendingOf(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  payout: Payout,
  payee: PayeeRow,
  rail: CurrentRail,
): Sending {
  const { partner_name, partner_email, hint } = payee;
  const { mode, version } = rail as NonNullable<CurrentRail>;
  const transfer: Transfer = {
    ...{
      idempotency_key: `${payout.id}-${payout.attempt + 1}`,
      payout_id: payout.id,
      program_name: program.product_name,
    },
    ...{ partner_name, partner_email },
    ...{ amount_minor: payout.amount_minor, currency: payout.currency, began_at: tx.now },
    destination: detailsOf(services, paidBy(payout, payee)),
  };
  return { payout, rail: payee.method as RailName, mode, version, hint, transfer };
}
