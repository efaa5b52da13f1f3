import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { event } from '../../events/event.ts';
import { payeeName } from '../../partners/partner.ts';
import type { PayoutMethodName, Program } from '../../programs/program.ts';
import { type Creditor, transferRefusal } from '../bank/transfer.ts';
import { canPay } from '../can_pay.ts';
import { currentRail } from '../credentials/rail_credentials.ts';
import type { RailMethod } from '../credentials/rail_method.ts';
import { type HeldReason, held_texts, obstacle, type Payee, reason_texts } from '../eligibility.ts';
import { PayoutFiles } from '../files/freeze.ts';
import type { FileMethod } from '../files/frozen_transfer.ts';
import { type Payout, payouts } from '../payout.ts';
import { statusAfter } from '../payout_state.ts';
import type { RailName, Transfer } from '../rails/rail.ts';
import { isRailName } from '../rails/rails.ts';
import { DailyLimit } from './limit.ts';
import { type Sending, sendByRails } from './send_by_rails.ts';

/** How long a payout that was not sent is passed over when payouts are sent automatically. */
const held_ms = 3_600_000;

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
 * @param files those that they go into, where others follow: the caller tells them
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
  const approved_only = action === 'send' && (await needsApproval(tx, batch_payouts));
  const held: Held[] = [];
  const for_rails: Sending[] = [];
  const for_files: { method: FileMethod; payout: Payout }[] = [];
  for (const payout of batch_payouts) {
    statusAfter(payout, action);
    const payee = payees.get(payout.partner_id);
    const reason =
      (approved_only ? notApproved(payout, payee) : undefined) ??
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
  if (!files) await into.tell();
  return held;
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

/** The partners of payouts, but for those who are deleted. */
async function payeesOf(tx: Tx, batch_payouts: Payout[]): Promise<Map<string, PayeeRow>> {
  const rows = await tx.all<PayeeRow & { id: string }>(sql`
    select t.id, t.status, t.min_payout_minor, t.tax_form_status, m.method, m.details, m.hint, m.updated_at as changed_at,
      t.email as partner_email, ${payeeName('t')} as partner_name
    from program.partner t
    left join program.payout_method m on m.organization_id = t.organization_id and m.partner_id = t.id
    where ${tenant(tx)} and t.id = any(${batch_payouts.map(({ partner_id }) => partner_id)}) and t.deleted_at is null`);
  return new Map(rows.map((row) => [row.id, row]));
}

async function needsApproval(tx: Tx, [first]: Payout[]): Promise<boolean> {
  if (!first) return false;
  const { approval_required } = await tx.one<{ approval_required: boolean }>(sql`
    select t.approval_required from program.payout_batch t where ${tenant(tx)} and t.id = ${first.batch_id}`);
  return approval_required;
}

/**
 * Whoever approves a batch approves where its money goes: what was changed since is not sent. A retry is decided by a person, for each payout:
 * it takes the method that the partner has now.
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
  const reason = obstacle(payee, program);
  if (reason) return reason;
  const method = payee.method as PayoutMethodName;
  if (!canPay(method, payout) || fileRefusal(services, payout, payee)) return 'currency_not_supported';
  const rail = method === 'crypto' ? { mode: 'live' } : await railOf(method);
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
    tx.emit(event('payout.not_eligible', after, { reason, reason_text: held_texts[reason] }));
  }
  return after;
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
    destination: destinationOf(services, payout, payee),
  };
  return { payout, rail: payee.method as RailName, mode, version, hint, transfer };
}
