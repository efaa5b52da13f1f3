/**
 * What becomes of a sale's commissions when the sale changes, as pure functions on plain values: decisions, section 6. Every `_minor` is an
 * integer in minor units.
 */

/** A commission of the sale that counts: neither voided, rejected nor deleted. */
export type Standing = {
  id: string;
  kind: 'sale' | 'bonus' | 'clawback';
  amount_minor: number;
  /** Unpaid, and in no payout. */
  open: boolean;
};

export type Step =
  /** What is open comes to another amount, above 0. */
  | { do: 'change'; id: string; amount_minor: number }
  | { do: 'void'; id: string }
  | { do: 'delete'; id: string }
  /** Another commission carries a difference: below 0 it is a clawback, above 0 a bonus. */
  | { do: 'carry'; of: string; amount_minor: number }
  /** What came to nothing comes to something again, by the rate that it had. */
  | { do: 'earn_again'; of: string; amount_minor: number };

/**
 * Brings the commissions of a sale to what they are to come to: an unpaid one "shrinks or is voided; for a paid or locked one a clawback
 * carries the difference".
 * @param target_minor from `remainingCommission`; 0 where no rate was ever copied
 * @param voided_id the one that came to nothing before, where none of kind `sale` counts
 */
export function settlement(standing: readonly Standing[], target_minor: number, voided_id: string | null): Step[] {
  const difference = BigInt(target_minor) - sum(standing);
  if (difference === 0n) return [];
  const earned = standing.find(({ kind }) => kind === 'sale');
  if (earned?.open) return changed(earned, BigInt(earned.amount_minor) + difference);
  if (!earned && voided_id !== null && difference > 0n) return earnedAgain(voided_id, difference);
  return carried(earned?.id ?? voided_id ?? (standing[0] as Standing).id, difference);
}

/** No commission but a clawback is below 0: what exceeds the open one is carried by another. */
function changed({ id }: Standing, amount: bigint): Step[] {
  if (amount <= 0n) return [{ do: 'void', id }, ...carried(id, amount)];
  const amount_minor = within(amount);
  return [{ do: 'change', id, amount_minor }, ...carried(id, amount - BigInt(amount_minor))];
}

function earnedAgain(of: string, amount: bigint): Step[] {
  const amount_minor = within(amount);
  return [{ do: 'earn_again', of, amount_minor }, ...carried(of, amount - BigInt(amount_minor))];
}

/** Takes back everything that a sale earned: what is open is deleted, what is paid or in a payout is clawed back. */
export function takingBack(standing: readonly Standing[]): Step[] {
  const deleted = standing.filter(({ open }) => open).map(({ id }): Step => ({ do: 'delete', id }));
  const settled = standing.filter(({ open }) => !open);
  const [first] = settled;
  return first ? [...deleted, ...carried(first.id, 0n - sum(settled))] : deleted;
}

/** As one commission, or as several where one would be beyond the integers that JSON carries exactly. */
function carried(of: string, difference: bigint): Step[] {
  if (difference === 0n) return [];
  const amount_minor = within(difference);
  return [{ do: 'carry', of, amount_minor }, ...carried(of, difference - BigInt(amount_minor))];
}

const most = BigInt(Number.MAX_SAFE_INTEGER);

function within(amount: bigint): number {
  if (amount > most) return Number(most);
  return Number(amount < -most ? -most : amount);
}

const sum = (some: readonly Standing[]): bigint =>
  some.reduce((total, { amount_minor }) => total + BigInt(amount_minor), 0n);
