import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { insert } from '../../../core/postgres/write.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { event } from '../../events/event.ts';
import { payeeName } from '../../partners/partner.ts';
import type { PayoutMethodName, Program } from '../../programs/program.ts';
import { type Creditor, transferRefusal } from '../bank/transfer.ts';
import { canPay } from '../can_pay.ts';
import { currentRail } from '../credentials/rail_credentials.ts';
import { type NotEligibleReason, obstacle, type Payee, reason_texts } from '../eligibility.ts';
import { freezeFile } from '../files/freeze.ts';
import type { FileMethod } from '../files/frozen_transfer.ts';
import { type Payout, payouts } from '../payout.ts';
import { statusAfter } from '../payout_state.ts';
import type { Transfer } from '../rails/rail.ts';
import { isRailName } from '../rails/rails.ts';
import { DailyLimit } from './limit.ts';
import { nextPollAt } from './poll_time.ts';

/** How long a payout that was not sent is passed over when payouts are sent automatically. */
const held_ms = 3_600_000;

/** Why a payout is not sent: what a batch calls not eligible, or what the program lacks today. */
export type HeldReason =
  | NotEligibleReason
  | 'no_credentials'
  | 'limit_reached'
  | 'partner_deleted'
  | 'destination_not_approved';

const held_texts: Readonly<Record<Exclude<HeldReason, NotEligibleReason>, string>> = {
  no_credentials:
    'The program has no credentials for the payout method. Set them with PUT /v1/programs/{id}/rails/{rail}.',
  limit_reached:
    'The payout would exceed what the program may send today. It can be sent tomorrow (UTC) if the limit of a day allows its amount; otherwise raise the limit.',
  partner_deleted: 'The partner is deleted. Mark the payout as paid, or delete it.',
  destination_not_approved:
    'The payout method was changed after the batch that was approved. Delete the payout: the next batch includes its commissions.',
};

export const textOf = (reason: HeldReason): string =>
  reason in held_texts ? held_texts[reason as keyof typeof held_texts] : reason_texts[reason as NotEligibleReason];

interface PayeeRow extends Payee {
  partner_name: string;
  partner_email: string;
  details: Buffer | null;
  hint: string | null;
  /** When the payout method was last changed. */
  changed_at: string | null;
}

export interface Held {
  payout: Payout;
  reason: HeldReason;
}

/**
 * Sends payouts of one batch, which the caller has locked: each becomes `processing` with a new attempt, `payout.updated`, and a job calls
 * its rail; what goes by file is frozen in one. "Method, form and suspension are judged again": what cannot be sent stays as it is.
 * @param action what the statuses of all of them allow
 * @returns those that were not sent
 * @throws Problem payout_locked
 */
export async function sendPayouts(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  batch_payouts: Payout[],
  action: 'send' | 'retry',
): Promise<Held[]> {
  const limit = new DailyLimit(tx, program);
  const held: Held[] = [];
  const for_files: { method: FileMethod; payout: Payout }[] = [];
  for (const payout of batch_payouts) {
    statusAfter(payout, action);
    const payee = await payeeOf(tx, payout.partner_id);
    const reason =
      (await notApproved(tx, payout, payee, action)) ?? (await heldReason(tx, services, program, payout, payee, limit));
    const method = payee?.method as PayoutMethodName;
    if (reason) held.push({ payout: await hold(tx, payout, reason), reason });
    else if (isRailName(method)) await sendByRail(tx, services, program, payout, payee as PayeeRow, action);
    else for_files.push({ method, payout });
  }
  for (const [method, of_method] of Map.groupBy(for_files, (one) => one.method)) {
    const file_payouts = of_method.map(({ payout }) => payout);
    await freezeFile(tx, services, (file_payouts[0] as Payout).batch_id, method, file_payouts);
  }
  return held;
}

const payeeOf = (tx: Tx, partner_id: string): Promise<PayeeRow | undefined> =>
  tx.maybe<PayeeRow>(sql`
    select t.status, t.min_payout_minor, t.tax_form_status, m.method, m.details, m.hint, m.updated_at as changed_at, t.email as partner_email,
      ${payeeName('t')} as partner_name
    from program.partner t
    left join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.id
    where ${tenant(tx)} and t.id = ${partner_id} and t.deleted_at is null`);

/**
 * Whoever approves a batch approves where its money goes: what was changed since is not sent. A retry is decided by a person, for each payout:
 * it takes the method that the partner has now.
 */
async function notApproved(
  tx: Tx,
  { batch_id, created_at }: Payout,
  payee: PayeeRow | undefined,
  action: 'send' | 'retry',
): Promise<'destination_not_approved' | undefined> {
  if (action === 'retry' || !payee?.changed_at || payee.changed_at <= created_at) return undefined;
  const { approval_required } = await tx.one<{ approval_required: boolean }>(sql`
    select t.approval_required from program.payout_batch t where ${tenant(tx)} and t.id = ${batch_id}`);
  return approval_required ? 'destination_not_approved' : undefined;
}

async function heldReason(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  program: Program,
  payout: Payout,
  payee: PayeeRow | undefined,
  limit: DailyLimit,
): Promise<HeldReason | undefined> {
  if (!payee) return 'partner_deleted';
  const reason = obstacle(payee, program);
  if (reason) return reason;
  const method = payee.method as PayoutMethodName;
  if (!canPay(method, payout) || fileRefusal(services, payout, payee)) return 'currency_not_supported';
  const rail = method === 'crypto' ? { mode: 'live' } : await currentRail(tx, program.id, method);
  if (!rail) return 'no_credentials';
  const is_within = rail.mode === 'test' || (await limit.take(payout.amount_minor, payout.currency));
  return is_within ? undefined : 'limit_reached';
}

const destinationOf = ({ vault }: Pick<Services, 'vault'>, { partner_id }: Payout, { details }: PayeeRow) =>
  JSON.parse(vault.decrypt(details as Buffer, partner_id)) as Record<string, string>;

/** Why a payout cannot stand in a bank's file: one such would keep all others from being sent. */
function fileRefusal(services: Pick<Services, 'vault'>, payout: Payout, payee: PayeeRow): string | null {
  const { method } = payee;
  if (method !== 'bank_transfer' && method !== 'wire') return null;
  const { id: key, amount_minor, currency } = payout;
  const creditor = destinationOf(services, payout, payee) as unknown as Creditor;
  return transferRefusal({ method, currency }, { key, amount_minor, creditor, remittance: '' });
}

/** Notes why a payout is not sent. `payout.not_eligible` tells it where that is a matter of the partner, once for each reason. */
async function hold(tx: Tx, payout: Payout, reason: HeldReason): Promise<Payout> {
  const { held_reason } = await tx.one<{ held_reason: string | null }>(sql`
    select t.held_reason from program.payout t where ${tenant(tx)} and t.id = ${payout.id}`);
  const held_until = new Date(Date.parse(tx.now) + held_ms).toISOString();
  const after = await payouts.update(tx, payout.id, { held_reason: reason, held_until });
  if (held_reason !== reason && reason in reason_texts) {
    tx.emit(event('payout.not_eligible', after, { reason, reason_text: textOf(reason) }));
  }
  return after;
}

async function sendByRail(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  program: Program,
  payout: Payout,
  payee: PayeeRow,
  action: 'send' | 'retry',
): Promise<void> {
  const rail = payee.method as 'paypal' | 'wise' | 'stripe';
  const current = await currentRail(tx, program.id, rail);
  const number = payout.attempt + 1;
  const id = `${payout.id}-${number}`;
  const transfer: Transfer = {
    ...{ idempotency_key: id, payout_id: payout.id, program_name: program.product_name },
    ...{ partner_name: payee.partner_name, partner_email: payee.partner_email },
    ...{ amount_minor: payout.amount_minor, currency: payout.currency, began_at: tx.now },
    destination: destinationOf({ vault }, payout, payee),
  };
  await insert(tx, 'program.payout_attempt', {
    ...{ id, payout_id: payout.id, program_id: program.id, number, rail, mode: current?.mode },
    ...{ credentials_version: current?.version, amount_minor: payout.amount_minor, currency: payout.currency },
    request: vault.encrypt(JSON.stringify(transfer), id),
    ...{
      destination_hint: payee.hint,
      status: 'prepared',
      next_poll_at: nextPollAt('prepared', 0, tx.now),
      began_at: tx.now,
    },
  });
  const sent = await payouts.update(tx, payout.id, {
    ...{
      status: statusAfter(payout, action),
      attempt: number,
      submitted_at: tx.now,
      livemode: current?.mode !== 'test',
    },
    ...{ method: rail, destination_hint: payee.hint, failed_at: null, error_code: null, error_message: null },
    ...{ held_reason: null, held_until: null },
  });
  tx.emit(event('payout.updated', sent, { previous_status: payout.status }));
  tx.enqueue('program/poll_payout', { organization_id: tx.organization_id, request_id: tx.request_id, id: payout.id });
}
