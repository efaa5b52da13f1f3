/**
 * Computes the rest of a commission when its sale is refunded, as pure functions on plain values: see README.md. Every `_minor` is an integer in
 * minor units.
 */

import { type CopiedRate, commissionAmount, safe, scale } from './commission_rate.ts';

/** A sale's commission base, its amount and what of the amount has been refunded, all in minor units. */
export type RefundedSale = { base_minor: number; amount_minor: number; refunded_minor: number };

/**
 * Returns the amount that a sale's commissions must sum to after refunds, in minor units: "the copied rate applied to what is left of its base, and
 * exactly 0 when all is refunded". A fixed rate is one amount whatever the base, so it stays whole until nothing is left of the sale. Before any
 * refund this is the amount the commission was created with.
 * @throws RangeError when refunded_minor is below 0 or above amount_minor
 */
export function remainingCommission(copied: CopiedRate, sale: RefundedSale): number {
  const base_minor = baseLeft(sale);
  return isNothingLeft(sale) ? 0 : commissionAmount(copied, base_minor);
}

/** A person's decision that a sale's commissions come to `total_minor` while `base_minor` is left of its base. */
export type Edit = { total_minor: number; base_minor: number };

/**
 * Returns the amount that a sale's commissions must sum to after an edit by hand: the edited sum scaled by the rest of the base, half away from zero,
 * and exactly 0 when all is refunded. With no base to scale by, the edited sum stays whole until then.
 * @throws RangeError when the result is not a safe integer, or refunded_minor is below 0 or above amount_minor
 */
export function remainingEdited({ total_minor, base_minor }: Edit, sale: RefundedSale): number {
  const left = baseLeft(sale);
  if (isNothingLeft(sale)) return 0;
  return base_minor === 0 ? safe(total_minor) : safe(Number(scale(total_minor, left, base_minor)));
}

/**
 * Returns the rest of a commission base: `base × (amount − refunded) / amount`, half away from zero, exactly 0 when all is refunded. A refund is a
 * part of amount_minor, and takes tax, shipping, fee and discount with it in proportion.
 * @throws RangeError when refunded_minor is below 0 or above amount_minor
 */
export function baseLeft({ base_minor, amount_minor, refunded_minor }: RefundedSale): number {
  if (safe(refunded_minor) < 0 || refunded_minor > safe(amount_minor)) {
    throw new RangeError(`refunded_minor must be from 0 to amount_minor (${amount_minor}), not ${refunded_minor}`);
  }
  if (refunded_minor === 0) return safe(base_minor);
  return safe(Number(scale(base_minor, amount_minor - refunded_minor, amount_minor)));
}

/** All is refunded, or the amount is 0: a sale of 0 has nothing left of its base either. */
export const isNothingLeft = ({ amount_minor, refunded_minor }: Omit<RefundedSale, 'base_minor'>): boolean =>
  refunded_minor === amount_minor;
