import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Values } from '../../core/postgres/write.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { newId } from '../../core/values/id.ts';
import { event } from '../events/event.ts';
import { partners } from '../partners/partner.ts';
import type { Sale } from '../sales/sale.ts';
import { type Standing, type Step, settlement, takingBack } from './adjustment.ts';
import { type Commission, commissions } from './commission.ts';
import { baseLeft, type CopiedRate, commissionBase, remainingCommission } from './commission_rate.ts';
import { exactly } from './earn.ts';

/** With what only the rules need to know of it. */
type Earned = Commission & CopiedRate & { base_is_net: boolean | null };

const rated = sql`${commissions.columns}, t.max_commission_minor, t.base_is_net, t.edited_by_hand`;

/**
 * Brings a sale's commissions to "the copied rate applied to what is left of its base, and exactly 0 when all is refunded". What was changed
 * by hand is computed again; what was cancelled by hand stays cancelled, and so does what corrected it.
 * @param void_reason why a commission that comes to 0 is voided
 * @throws Problem invalid_parameter when the result is too large
 */
export async function settleCommissions(tx: Tx, of: Sale, void_reason: VoidReason): Promise<void> {
  const all = await commissionsOf(tx, of);
  const earned = all.find(({ kind }) => kind === 'sale');
  const voided = earned ? undefined : await voidedBefore(tx, of);
  const rate = earned ?? voided;
  const refunded = {
    base_minor: commissionBase(of, rate?.base_is_net ?? false),
    amount_minor: of.amount_minor,
    refunded_minor: of.refunded_minor,
  };
  const target = rate ? exactly(() => remainingCommission(rate, refunded)) : 0;
  await tx.all(sql`
    update program.commission t set edited_by_hand = false
    where ${tenant(tx)} and t.sale_id = ${of.id} and t.partner_id = ${of.partner_id} and t.edited_by_hand
      and (t.kind <> 'sale' or t.id = ${earned?.id ?? null})`);
  const steps = settlement(all.map(standing), target, voided?.id ?? null);
  const base_amount_minor = baseLeft(refunded);
  await take(tx, voided ? [...all, voided] : all, steps, { base_amount_minor, void_reason });
  // A fixed or capped amount stays what it is while its base changes.
  if (steps.length === 0 && earned && standing(earned).open && earned.base_amount_minor !== base_amount_minor)
    await commissions.update(tx, earned.id, { base_amount_minor });
}

/** Whether the sale's partner has a commission of it that counts, be it paid, or one that came to nothing and may come back. */
export async function hasRate(tx: Tx, of: Sale): Promise<boolean> {
  const counts = (await commissionsOf(tx, of)).some(({ kind }) => kind === 'sale');
  return counts || (await voidedBefore(tx, of)) !== undefined;
}

/** Whether the sale's partner ever had a commission of it, be it cancelled or deleted by hand since. */
export async function hasEverEarned(tx: Tx, { id: sale_id, partner_id }: Sale): Promise<boolean> {
  const [found] = await tx.all(sql`
    select from program.commission t
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and t.kind = 'sale'
      and (t.deleted_at is null or t.edited_by_hand)
    limit 1`);
  return found !== undefined;
}

/** Takes back everything that a deleted sale earned, also what partners have who had it before. */
export async function takeBackAll(tx: Tx, of: Sale): Promise<void> {
  const earners = await tx.all<{ partner_id: string }>(sql`
    select distinct t.partner_id
    from program.commission t
    where ${tenant(tx)} and t.sale_id = ${of.id}
    order by t.partner_id`);
  for (const { partner_id } of earners) await takeBackCommissions(tx, { ...of, partner_id });
}

/** Takes back everything that a sale earned its partner: what is unpaid is removed, what is paid or in a payout is clawed back. */
export async function takeBackCommissions(tx: Tx, of: Sale): Promise<void> {
  const all = await commissionsOf(tx, of);
  const steps = takingBack(all.map(standing));
  await take(tx, all, steps, { base_amount_minor: 0, void_reason: 'sale_corrected' });
}

const standing = ({ id, kind, amount_minor, status, payout_id }: Commission): Standing => ({
  id,
  kind,
  amount_minor,
  open: status !== 'paid' && payout_id === null,
});

/** Does what was decided, and tells it. */
async function take(
  tx: Tx,
  all: Earned[],
  steps: Step[],
  { base_amount_minor, void_reason }: { base_amount_minor: number; void_reason: VoidReason },
): Promise<void> {
  const named = (wanted: string) => all.find(({ id }) => id === wanted) as Earned;
  for (const step of steps) {
    if (step.do === 'change') await changeOpen(tx, named(step.id), { ...step, base_amount_minor });
    else if (step.do === 'void') await voidCommission(tx, named(step.id), void_reason);
    else if (step.do === 'delete') await deleteCommission(tx, named(step.id));
    else if (step.do === 'carry') await createDifference(tx, named(step.of), step.amount_minor);
    else await earnAgain(tx, named(step.of), step.amount_minor, base_amount_minor);
  }
}

/** What the sale's partner earned by it, then what corrects that; locked, those that count. */
const commissionsOf = (tx: Tx, { id: sale_id, partner_id }: Sale): Promise<Earned[]> =>
  tx.all<Earned>(sql`
    select ${rated}
    from ${commissions.from}
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and ${commissions.alive} and t.status not in ('voided', 'rejected')
    order by t.kind <> 'sale', t.id
    for no key update of t`);

const void_reasons = ['sale_refunded', 'sale_corrected'] as const;
type VoidReason = (typeof void_reasons)[number];

/** What came to 0, and comes to more again: unless it, or what came after it, was cancelled or deleted by hand, or with its partner. */
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
    where of_sale.deleted_at is null and of_sale.status = 'voided' and not of_sale.edited_by_hand and of_sale.void_reason = any(${[...void_reasons]})`);

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

/** Cancels an unpaid commission and tells `commission.voided`. */
export async function voidCommission(
  tx: Tx,
  commission: Commission,
  reason: string,
  { edited_by_hand = false } = {},
): Promise<void> {
  const voided = await commissions.update(tx, commission.id, {
    status: 'voided',
    voided_at: tx.now,
    void_reason: reason,
    edited_by_hand,
  });
  tx.emit(event('commission.voided', voided, { reason }));
}

/** A clawback where money is to come back; where more is owed after all, a bonus on the same sale. Due at once. */
async function createDifference(tx: Tx, of: Commission, amount_minor: number): Promise<void> {
  const kind = amount_minor < 0 ? 'clawback' : 'bonus';
  await create(tx, of, { kind, clawback_of: of.id, amount_minor, status: 'due', mature_at: tx.now });
}

/** By the rate that a voided commission was computed with, by when that would have matured, and approved if that was. */
function earnAgain(tx: Tx, voided: Earned, amount_minor: number, base_amount_minor: number): Promise<void> {
  const { rate_type, rate_value, max_commission_minor, base_is_net, mature_at, approved_at } = voided;
  const open = approved_at === null ? 'pending' : 'approved';
  const status = mature_at <= tx.now ? 'due' : open;
  const rate = { rate_type, rate_value, max_commission_minor, base_is_net };
  return create(tx, voided, { kind: 'sale', ...rate, amount_minor, base_amount_minor, status, mature_at, approved_at });
}

/** Another commission of the same sale. A partner who is deleted is owed nothing more, and still gives back. */
async function create(
  tx: Tx,
  { program_id, partner_id, customer_id, sale_id, rule_id, currency }: Commission,
  values: Pick<Commission, 'kind' | 'amount_minor' | 'status' | 'mature_at'> & Values,
): Promise<void> {
  if (
    values.amount_minor > 0 &&
    !(await partners.find(tx, sql`${tenant(tx)} and t.id = ${partner_id}`, lockOf('share')))
  )
    return;
  const copied = { program_id, partner_id, customer_id, sale_id, rule_id, currency };
  const commission = (await commissions.insert(tx, { ...copied, ...values, id: newId('com') })) as Commission;
  tx.emit(event('commission.created', commission));
}
