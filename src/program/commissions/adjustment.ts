/**
 * Computes a sale's commissions after the sale is refunded or corrected, as pure functions on plain values: see README.md. Every `_minor` is an
 * integer in minor units.
 */

/** A commission of the sale that counts: neither voided, rejected nor deleted. */
export type Counted = {
  id: string;
  kind: 'sale' | 'bonus' | 'clawback';
  amount_minor: number;
  /** Unpaid, and in no payout. */
  open: boolean;
};

export type Step =
  /** An open commission gets another amount, above 0. */
  | { do: 'change'; id: string; amount_minor: number }
  | { do: 'void'; id: string }
  | { do: 'delete'; id: string }
  /** Another commission carries a difference: below 0 it is a clawback, above 0 a bonus. */
  | { do: 'carry'; of: string; amount_minor: number }
  /** A commission that was voided is earned again, by the rate that it had. */
  | { do: 'earn_again'; of: string; amount_minor: number };

/**
 * The amounts that a sale's commissions may sum to: one amount, unless a person decided on a clawback or a bonus that corrects it. A clawback that
 * was cancelled leaves the partner that much more, a bonus that was cancelled that much less, and nothing makes them again.
 */
export type Owed = { least: bigint; most: bigint };

/**
 * @param target_minor from `remainingCommission` or `remainingEdited`; 0 where no rate was ever copied
 * @param by_hand what each edit or cancellation by hand added to the sum, or took from it
 */
export const owedOf = (target_minor: number, by_hand: readonly number[] = []): Owed => {
  const sumOf = (some: number[]) => some.reduce((total, minor) => total + BigInt(minor), BigInt(target_minor));
  return { least: sumOf(by_hand.filter((minor) => minor < 0)), most: sumOf(by_hand.filter((minor) => minor > 0)) };
};

/**
 * Returns the amount from which a change of a correction by hand is measured: its own computed amount, unless an adjustment since has counted on an
 * amount that an earlier edit withheld or left. Then the change takes that along too, and is measured from less, or more.
 * @param computed_minor its own computed amount
 * @param total the sum of the sale's commissions, with the correction as it is before the change
 * @param others the amount owed without the decision about the correction
 */
export function measuredFrom(
  computed_minor: number,
  change: { before: number; after: number },
  total: bigint,
  others: Owed,
): number {
  const now = total + BigInt(change.after) - BigInt(change.before);
  if (now > others.most) return Math.min(computed_minor, Number(BigInt(change.after) - (now - others.most)));
  if (now < others.least) return Math.max(computed_minor, Number(BigInt(change.after) - (now - others.least)));
  return computed_minor;
}

/** Returns the amount to add to a sum, so that it is the amount owed. */
function differenceFrom({ least, most }: Owed, total: bigint): bigint {
  if (total < least) return least - total;
  return total > most ? most - total : 0n;
}

/**
 * Brings the commissions of a sale to what they are to sum to: an unpaid one "shrinks or is voided; for a paid or locked one a clawback
 * carries the difference".
 * @param voided_id the commission that was voided before, where none of kind `sale` counts
 */
export function adjustment(counted: readonly Counted[], owed: Owed, voided_id: string | null): Step[] {
  const difference = differenceFrom(owed, sum(counted));
  if (difference === 0n) return [];
  const earned = counted.find(({ kind }) => kind === 'sale');
  if (earned?.open) return changed(earned, BigInt(earned.amount_minor) + difference);
  if (!earned && voided_id !== null && difference > 0n) return earnedAgain(voided_id, difference);
  return carried(earned?.id ?? voided_id ?? (counted[0] as Counted).id, difference);
}

/** No commission but a clawback is below 0: what exceeds the open one is carried by another. */
function changed({ id }: Counted, amount: bigint): Step[] {
  if (amount <= 0n) return [{ do: 'void', id }, ...carried(id, amount)];
  const amount_minor = within(amount);
  return [{ do: 'change', id, amount_minor }, ...carried(id, amount - BigInt(amount_minor))];
}

function earnedAgain(of: string, amount: bigint): Step[] {
  const amount_minor = within(amount);
  return [{ do: 'earn_again', of, amount_minor }, ...carried(of, amount - BigInt(amount_minor))];
}

/**
 * Takes back everything that a sale earned: open commissions are deleted, paid ones and those in a payout are clawed back.
 * @param owed what a person decided to leave, or to withhold
 */
export function takingBack(counted: readonly Counted[], owed: Owed = owedOf(0)): Step[] {
  const deleted = counted.filter(({ open }) => open).map(({ id }): Step => ({ do: 'delete', id }));
  const locked = counted.filter(({ open }) => !open);
  const [first] = locked;
  return first ? [...deleted, ...carried(first.id, differenceFrom(owed, sum(locked)))] : deleted;
}

/** Carries a difference by one commission, or by several where one would be beyond the integers that JSON carries exactly. */
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

/** Returns the sum of commissions. */
export const sum = (counted: readonly Counted[]): bigint =>
  counted.reduce((total, { amount_minor }) => total + BigInt(amount_minor), 0n);
