/** Computes a sale's net amount, as a pure function on integers in minor units: see README.md. */

/** The amount of a sale and the parts of it that are no revenue, all in minor units. */
export type AmountParts = {
  amount_minor: number;
  tax_minor: number;
  shipping_minor: number;
  fee_minor: number;
  discount_minor: number;
};

/** The amount, and the parts that it includes, in the order in which they are taken from it. */
export const amount_fields = ['amount_minor', 'tax_minor', 'shipping_minor', 'fee_minor', 'discount_minor'] as const;

/** The first part that is more than what the parts before it leave of the amount; undefined where the amount covers all of them. */
export function partBeyondAmount(amounts: AmountParts): keyof AmountParts | undefined {
  let { amount_minor: left } = amounts;
  return amount_fields.slice(1).find((field) => {
    left -= amounts[field];
    return left < 0;
  });
}

/**
 * net_amount_minor: amount_minor without its four parts. Each part is included in the amount, the discount too: an amount from which the
 * discount is already deducted has no discount_minor. Never below 0, also of a sale from before such parts were refused.
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
