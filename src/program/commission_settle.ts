import sql from 'sql-template-tag';
import { newId } from '../core/id.ts';
import { tenant } from '../core/resource.ts';
import type { Tx } from '../core/transaction.ts';
import { type Commission, commission } from './commission.ts';
import { baseLeft, type CopiedRate, commissionBase, remainingCommission } from './commission_rate.ts';
import { event } from './event.ts';
import type { Sale } from './sale_record.ts';

/** With what only the rules need to know of it. */
type Earned = Commission & CopiedRate & { base_is_net: boolean | null };

/**
 * Brings a sale's commissions to "the copied rate applied to what is left of its base, and exactly 0 when all is refunded": an unpaid one
 * shrinks, grows or is voided; for one that is paid or in a payout, another commission carries the difference.
 * @param void_reason why a commission that comes to 0 is voided: `sale_refunded`
 */
export async function settleCommissions(tx: Tx, of: Sale, void_reason: string): Promise<void> {
  const [earned, ...others] = await commissionsOf(tx, of);
  if (!earned) return;
  const refunded = {
    base_minor: commissionBase(of, earned.base_is_net ?? false),
    amount_minor: of.amount_minor,
    refunded_minor: of.refunded_minor,
  };
  const target = remainingCommission(earned, refunded);
  await bringTo(tx, earned, others, target, baseLeft(refunded), void_reason);
}

/** Takes back everything that a sale earned: what is unpaid is removed, what is paid or in a payout is clawed back. */
export async function takeBackCommissions(tx: Tx, of: Sale): Promise<void> {
  const all = await commissionsOf(tx, of);
  for (const open of all.filter(isOpen)) {
    await commission.update(tx, open.id, { deleted_at: tx.now });
    tx.emit(event('commission.deleted', of.program_id, { commission_id: open.id, partner_id: open.partner_id }));
  }
  const settled = all.filter((one) => !isOpen(one));
  const [first] = settled;
  if (first) await createDifference(tx, first, -sum(settled));
}

/** What the sale's partner earned by it, then what corrects that; locked, those that count. */
const commissionsOf = (tx: Tx, { id: sale_id, partner_id }: Sale): Promise<Earned[]> =>
  tx.all<Earned>(sql`
    select ${commission.columns}, t.max_commission_minor, t.base_is_net
    from ${commission.from}
    where ${tenant(tx)} and t.sale_id = ${sale_id} and t.partner_id = ${partner_id} and ${commission.alive} and t.status not in ('voided', 'rejected')
    order by t.kind <> 'sale', t.id
    for no key update of t`);

const isOpen = ({ status, payout_id }: Commission): boolean => status !== 'paid' && payout_id === null;

const sum = (some: Commission[]): number => some.reduce((total, { amount_minor }) => total + amount_minor, 0);

async function bringTo(
  tx: Tx,
  earned: Earned,
  others: Earned[],
  target: number,
  base: number,
  void_reason: string,
): Promise<void> {
  const difference = target - sum([earned, ...others]);
  if (difference === 0) return;
  const amount_minor = earned.amount_minor + difference;
  if (!isOpen(earned)) {
    await createDifference(tx, earned, difference);
    return;
  }
  if (amount_minor === 0) {
    await voidCommission(tx, earned, void_reason);
    return;
  }
  await commission.update(tx, earned.id, { amount_minor, base_amount_minor: base, edited_by_hand: false });
  const { id: commission_id, program_id, partner_id, currency, status } = earned;
  tx.emit(
    event('commission.updated', program_id, {
      commission_id,
      partner_id,
      amount_minor,
      currency,
      status,
      previous_status: status,
    }),
  );
}

/** Cancels an unpaid commission and tells `commission.voided`. */
export async function voidCommission(tx: Tx, of: Commission, reason: string): Promise<void> {
  await commission.update(tx, of.id, { status: 'voided', voided_at: tx.now, void_reason: reason });
  const { id: commission_id, program_id, sale_id, partner_id, amount_minor, currency } = of;
  tx.emit(
    event('commission.voided', program_id, { commission_id, sale_id, partner_id, amount_minor, currency, reason }),
  );
}

/** A clawback where money is to come back; where more is owed after all, a bonus on the same sale. Due at once. */
async function createDifference(tx: Tx, of: Commission, amount_minor: number): Promise<void> {
  if (amount_minor === 0) return;
  const commission_id = newId('com');
  const { program_id, partner_id, customer_id, sale_id, rule_id, currency } = of;
  const row = {
    program_id,
    partner_id,
    customer_id,
    sale_id,
    rule_id,
    currency,
    amount_minor,
    status: 'due',
    mature_at: tx.now,
  };
  const clawback = amount_minor < 0;
  await commission.insert(tx, {
    ...row,
    id: commission_id,
    kind: clawback ? 'clawback' : 'bonus',
    clawback_of: of.id,
  });
  tx.emit(
    event('commission.created', program_id, {
      commission_id,
      sale_id,
      partner_id,
      amount_minor,
      currency,
      status: 'due',
      rule_id,
      mature_at: tx.now,
      ...(clawback ? { kind: 'clawback' as const } : {}),
    }),
  );
}
