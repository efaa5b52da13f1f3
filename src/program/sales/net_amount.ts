/** What a sale leaves after its parts, as a pure function on integers in minor units: see README.md. */

/** What a sale came to and what of it was not revenue, all in minor units. */
export type AmountParts = {
  amount_minor: number;
  tax_minor: number;
  shipping_minor: number;
  fee_minor: number;
  discount_minor: number;
};

/**
 * net_amount_minor: amount_minor without its four parts. Each part is included in the amount, the discount too: an amount from which the
 * discount is already deducted has no discount_minor. Never below 0.
 *
 * @throws RangeError when one is not a safe integer of 0 or more
 */
export function netAmount({ amount_minor, tax_minor, shipping_minor, fee_minor, discount_minor }: AmountParts): number {
  const parts = [tax_minor, shipping_minor, fee_minor, discount_minor];
  return parts.reduce((left, part) => Math.max(0, left - notNegative(part)), notNegative(amount_minor));
}

function notNegative(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not an integer from 0 to 2^53 - 1`);
  return value;
}
