import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/event.ts';
import { partners } from '../partners/partner.ts';
import type { Sale } from '../sales/sale.ts';
import { adjustment, type Counted, measuredFrom, owedOf, type Step, sum, takingBack } from './adjustment.ts';
import { because, type Cause, type Commission, changeCommission, commissions } from './commission.ts';
import { type CopiedRate, commissionBase, safe } from './commission_rate.ts';
import { isOpen, open_statuses, statusAt, uncounted_statuses } from './commission_state.ts';
import { voidCommission } from './commission_void.ts';
import { exactly } from './earn.ts';
import {
  baseLeft,
  type Edit,
  type RefundedSale,
  remainingCommission,
  remainingEdited,
} from './remaining_commission.ts';

/** A commission, with the columns that its record does not show. */
type Earned = Commission &
  CopiedRate & {
    base_is_net: boolean | null;
    edited_by_hand: boolean;
    edited_total_minor: number | null;
    edited_base_minor: number | null;
    held_for: string | null;
  };

/** A sale, and a partner who earned by it. */
type Earner = Pick<Sale, 'id' | 'partner_id'>;

const rated = sql`${commissions.columns}, t.max_commission_minor, t.base_is_net, t.edited_by_hand, t.edited_total_minor, t.edited_base_minor, t.held_for`;

/**
 * Brings a sale's commissions to "the copied rate applied to what is left of its base, and exactly 0 when all is refunded". An amount that was
 * edited by hand is scaled instead; a commission or a correction that was cancelled by hand stays cancelled.
 * @param cause also why a commission that comes to 0 is voided
 * @throws Problem invalid_parameter when the result is too large
 */
export async function adjustCommissions(
  tx: Tx,
  sale: Sale,
  cause: VoidReason | 'refund_reversed',
  refund_id?: string,
): Promise<void> {
  const counted = await countedCommissions(tx, sale);
  const earned = counted.find(({ kind }) => kind === 'sale');
  const voided = earned ? undefined : await voidedBefore(tx, sale);
  const rate = earned ?? voided;
  const left = refundedSale(sale, rate);
  const target = rate ? targetOf(rate, left) : 0;
  const by_hand = (await changesByHand(tx, sale)).map(({ minor }) => minor);
  const steps = adjustment(counted.map(asCounted), owedOf(target, by_hand), voided?.id ?? null);
  const base_amount_minor = baseLeft(left);
  const among = voided ? [...counted, voided] : counted;
  await takeSteps(tx, among, steps, { base_amount_minor, cause, refund_id });
  // A fixed or capped amount stays what it is while its base changes.
  if (steps.length === 0 && earned && asCounted(earned).open && earned.base_amount_minor !== base_amount_minor)
    await commissions.update(tx, earned.id, { base_amount_minor });
}

/** Returns the amount that a sale's commissions should sum to, by their rate, or by the edit that replaces it. */
function targetOf(rate: Earned, left: RefundedSale): number {
  const edit = editOf(rate);
  return exactly(() => (edit ? remainingEdited(edit, left) : remainingCommission(rate, left)));
}

const refundedSale = (sale: Sale, rate: Pick<Earned, 'base_is_net'> | undefined): RefundedSale => ({
  base_minor: commissionBase(sale, rate?.base_is_net ?? false),
  amount_minor: sale.amount_minor,
  refunded_minor: sale.refunded_minor,
});

/** Returns the edit of the commission; undefined where its rate holds. */
const editOf = ({ edited_total_minor: total_minor, edited_base_minor }: Earned): Edit | undefined =>
  total_minor === null ? undefined : { total_minor, base_minor: edited_base_minor ?? 0 };

const totalOf = (counted: Earned[]): number => safe(Number(sum(counted.map(asCounted))));

/**
 * Returns the columns to store with an edit or a cancellation by hand: of a commission that a sale earned, the sum of the sale's commissions and the
 * rest of the base; of a correction, the amount that it is measured from.
 * @param sale locked; undefined where it is deleted
 * @param amount_minor 0 where the commission is cancelled
 */
export async function keptOfEdit(
  tx: Tx,
  commission: Commission,
  sale: Sale | undefined,
  amount_minor: number,
): Promise<Values> {
  if (commission.sale_id === null) return {};
  if (commission.kind !== 'sale') return { computed_minor: await measure(tx, commission, sale, amount_minor) };
  if (!sale) return {};
  const counted = await countedCommissions(tx, sale);
  const earned = counted.find(({ id }) => id === commission.id);
  const edited = counted.map((one) => (one === earned ? { ...one, amount_minor } : one));
  return {
    edited_total_minor: exactly(() => totalOf(edited)),
    edited_base_minor: baseLeft(refundedSale(sale, earned)),
  };
}

/** Returns the amount that a correction is measured from when a person changes it. */
async function measure(tx: Tx, correction: Commission, sale: Sale | undefined, after: number): Promise<number> {
  const { id, partner_id, amount_minor: before } = correction;
  const known = await tx.one<{ computed_minor: number | null }>(
    sql`select t.computed_minor from program.commission t where ${tenant(tx)} and t.id = ${id}`,
  );
  const computed_minor = known.computed_minor ?? before;
  if (!sale) return computed_minor;
  const counted = await countedCommissions(tx, { ...sale, partner_id });
  const target = partner_id === sale.partner_id ? await currentTarget(tx, sale, counted) : 0;
  const total = sum(counted.map(asCounted));
  const decided = await changesByHand(tx, { ...sale, partner_id });
  const of_others = decided.filter((one) => one.id !== id).map(({ minor }) => minor);
  return safe(measuredFrom(computed_minor, { before, after }, total, owedOf(target, of_others)));
}

/** Returns the amount that the commissions of a sale should sum to. */
async function currentTarget(tx: Tx, sale: Sale, counted: Earned[]): Promise<number> {
  const rate = counted.find(({ kind }) => kind === 'sale') ?? (await voidedBefore(tx, sale));
  return rate ? targetOf(rate, refundedSale(sale, rate)) : 0;
}

/**
 * Returns whether the sale of a commission earns its partner nothing, whatever the commission was before it was in a payout: it was refunded in full
 * or deleted, is another partner's now, or is the partner's own purchase.
 * @param sale undefined where it is deleted
 */
export async function earnsNothing(tx: Tx, { partner_id }: Commission, sale: Sale | undefined): Promise<boolean> {
  if (!sale || sale.partner_id !== partner_id || sale.refunded_minor === sale.amount_minor) return true;
  const own = sql`select from program.sale t where ${tenant(tx)} and t.id = ${sale.id} and t.self_referral_partner_id = ${partner_id}`;
  return (await tx.maybe(own)) !== undefined;
}

/** Nothing is earned by the sale from now on, whatever its partner earned by it before. */
export const forfeitCommissions = (tx: Tx, { id: sale_id, partner_id }: Sale) =>
  tx.all(sql`
    update program.commission t set edited_by_hand = true, edited_total_minor = 0, edited_base_minor = 0
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind = 'sale' and t.deleted_at is null`);

/** Reads the amounts that each edit or cancellation by hand of a correction added to the sum, or took from it. `open`: it can still be deleted. */
async function changesByHand(
  tx: Tx,
  { id: sale_id, partner_id }: Earner,
): Promise<{ id: string; minor: number; open: boolean }[]> {
  const counts = sql`t.deleted_at is null and t.status not in ${uncounted_statuses}`;
  return tx.all(sql`
    select
      t.id,
      case when ${counts} then t.amount_minor else 0 end - coalesce(t.computed_minor, t.amount_minor) as minor,
      ${counts} and t.status in ${open_statuses} and t.payout_id is null as open
    from program.commission t
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind <> 'sale' and t.edited_by_hand`);
}

/**
 * Returns whether the sale's partner ever had a commission of it, be it cancelled or deleted by hand since. One that went with the sale to another
 * partner is none, unless it was edited by hand.
 */
export async function hasEverEarned(tx: Tx, { id: sale_id, partner_id }: Sale): Promise<boolean> {
  const commission = await tx.maybe(sql`
    select from program.commission t
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind = 'sale'
      and (t.deleted_at is null or t.edited_by_hand or t.edited_total_minor is not null)
    limit 1`);
  return commission !== undefined;
}

/** Takes back everything that a deleted sale earned, also from partners who were credited with it before. */
export async function takeBackAll(tx: Tx, sale: Sale): Promise<void> {
  const earners = await tx.all<{ partner_id: string }>(sql`
    select distinct t.partner_id
    from program.commission t
    where ${tenant(tx)} and t.sale_id = ${sale.id}
    order by t.partner_id`);
  for (const { partner_id } of earners) await takeBackCommissions(tx, { ...sale, partner_id }, 'sale_deleted');
}

/**
 * Takes back everything that a sale earned its partner: open commissions are deleted, paid ones and those in a payout clawed back, except
 * for what a person decided to leave.
 */
export async function takeBackCommissions(tx: Tx, sale: Earner, cause: Cause): Promise<void> {
  const counted = await countedCommissions(tx, sale);
  const by_hand = (await changesByHand(tx, sale)).filter(({ open }) => !open).map(({ minor }) => minor);
  const steps = takingBack(counted.map(asCounted), owedOf(0, by_hand));
  await takeSteps(tx, counted, steps, { base_amount_minor: 0, cause });
}

/** A sale that its partner earns by anew: what was voided because it came to 0 is not earned again by its old rate. */
export async function forgetVoided(tx: Tx, { id: sale_id, partner_id }: Earner): Promise<void> {
  const voided = await tx.all<Commission>(sql`
    select ${commissions.columns}
    from ${commissions.from}
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind = 'sale' and ${commissions.alive}
      and t.status = 'voided' and t.void_reason = any(${[...void_reasons]}) and not t.edited_by_hand and t.edited_total_minor is null
    order by t.id
    for no key update of t`);
  for (const commission of voided) {
    because(tx, 'sale_corrected');
    await deleteCommission(tx, commission);
  }
}

const asCounted = ({ id, kind, amount_minor, status, payout_id }: Commission): Counted => ({
  id,
  kind,
  amount_minor,
  open: isOpen(status) && payout_id === null,
});

type Change = { base_amount_minor: number; cause: Cause; refund_id?: string | undefined };

/** Takes the steps, each with its event. */
async function takeSteps(
  tx: Tx,
  among: Earned[],
  steps: Step[],
  { base_amount_minor, cause, refund_id }: Change,
): Promise<void> {
  const named = (wanted: string) => among.find(({ id }) => id === wanted) as Earned;
  for (const step of steps) {
    because(tx, cause, refund_id);
    if (step.do === 'change') await changeOpen(tx, named(step.id), { ...step, base_amount_minor });
    else if (step.do === 'void') await voidCommission(tx, named(step.id), cause);
    else if (step.do === 'delete') await deleteCommission(tx, named(step.id));
    else if (step.do === 'carry') await createDifference(tx, named(step.of), step.amount_minor);
    else await earnAgain(tx, named(step.of), step.amount_minor, base_amount_minor);
  }
}

/** The sale's commissions of its partner that count, locked: the one that was earned, then those that correct it. */
const countedCommissions = (tx: Tx, { id: sale_id, partner_id }: Earner): Promise<Earned[]> =>
  tx.all<Earned>(sql`
    select ${rated}
    from ${commissions.from}
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and ${commissions.alive} and t.status not in ${uncounted_statuses}
    order by t.kind <> 'sale', t.id
    for no key update of t`);

const void_reasons = ['sale_refunded', 'sale_corrected'] as const;
type VoidReason = (typeof void_reasons)[number];

/**
 * The commission that was voided because it came to 0, or was edited by hand and went with the sale to another partner, unless it, or a later
 * one, was cancelled or deleted by hand, or with its partner.
 */
const voidedBefore = (tx: Tx, { id: sale_id, partner_id }: Sale): Promise<Earned | undefined> =>
  tx.maybe<Earned>(sql`
    select of_sale.*
    from (
      select ${rated}, t.deleted_at
      from ${commissions.from}
      where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind = 'sale'
      order by t.id desc
      limit 1
    ) as of_sale
    where not of_sale.edited_by_hand
      and case
        when of_sale.deleted_at is null then of_sale.status = 'voided' and of_sale.void_reason = any(${[...void_reasons]})
        else of_sale.edited_total_minor is not null
      end`);

async function changeOpen(
  tx: Tx,
  commission: Commission,
  { amount_minor, base_amount_minor }: Pick<Commission, 'amount_minor' | 'base_amount_minor'>,
): Promise<void> {
  const changed = await commissions.update(tx, commission.id, { amount_minor, base_amount_minor });
  tx.emit(event('commission.updated', changed, { previous_status: changed.status }));
}

async function deleteCommission(tx: Tx, commission: Commission): Promise<void> {
  await commissions.update(tx, commission.id, { deleted_at: tx.now, edited_by_hand: false });
  tx.emit(event('commission.deleted', commission));
}

/** A clawback where money is to come back; where more is owed after all, a bonus on the same sale. Due at once. */
async function createDifference(tx: Tx, commission: Commission, amount_minor: number): Promise<void> {
  const kind = amount_minor < 0 ? 'clawback' : 'bonus';
  await create(tx, commission, { kind, clawback_of: commission.id, amount_minor, status: 'due', mature_at: tx.now });
}

/**
 * Earns a voided commission again, by its rate or as it was edited: approved or held by hand if it was, and mature when it would have been. It starts
 * `pending`, as all do that are not due yet, and is approved and held after that.
 */
async function earnAgain(tx: Tx, voided: Earned, amount_minor: number, base_amount_minor: number): Promise<void> {
  const { rate_type, rate_value, max_commission_minor, base_is_net, mature_at, approved_at } = voided;
  const { edited_total_minor, edited_base_minor, held_for: hold_reason } = voided;
  const status = statusAt(mature_at, tx.now);
  const is_approved = status === 'pending' && approved_at !== null;
  const rate = { rate_type, rate_value, max_commission_minor, base_is_net };
  const edit = { edited_by_hand: edited_total_minor !== null, edited_total_minor, edited_base_minor };
  const kept = { ...rate, ...edit, mature_at, approved_at: is_approved ? null : approved_at };
  const earned = await create(tx, voided, { kind: 'sale', ...kept, amount_minor, base_amount_minor, status });
  if (!earned) return;
  const approved = is_approved ? await changeCommission(tx, earned, { status: 'approved', approved_at }) : earned;
  if (hold_reason !== null) await changeCommission(tx, approved, { status: 'on_hold', hold_reason, held_at: tx.now });
}

/** Another commission of the same sale. A partner who is deleted is owed nothing more, and still gives back. */
async function create(
  tx: Tx,
  { program_id, partner_id, customer_id, sale_id, rule_id, currency }: Commission,
  values: Pick<Commission, 'kind' | 'amount_minor' | 'status' | 'mature_at'> & Values,
): Promise<Commission | undefined> {
  if (
    values.amount_minor > 0 &&
    !(await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share')))
  )
    return undefined;
  const copied = { program_id, partner_id, customer_id, sale_id, rule_id, currency };
  const commission = (await commissions.insert(tx, { ...copied, ...values, id: newId('com') })) as Commission;
  tx.emit(event('commission.created', commission));
  return commission;
}
