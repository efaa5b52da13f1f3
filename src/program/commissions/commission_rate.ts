/**
 * Computes what a rate pays on an amount, as pure functions on plain values: see README.md.
 *
 * Every `_minor` is an integer in minor units, every percent `rate_value` is in basis points, every `_at` is ISO 8601 in UTC. JPY and KWD need
 * nothing special: minor units are integers whatever their number of digits.
 */

export type RateType = 'percent' | 'fixed';

/** `percent`: rate_value in basis points. `fixed`: rate_value in minor units of the program's currency. */
export type Rate = { rate_type: RateType; rate_value: number };

/** A rate and the cap that goes with it: what a commission copies, so that a refund can apply it again. */
export type CopiedRate = Rate & { max_commission_minor: number | null };

/** "Base = net_amount_minor when the program says `commission_on_net_revenue`, else amount_minor." */
export function commissionBase(
  { amount_minor, net_amount_minor }: { amount_minor: number; net_amount_minor: number },
  commission_on_net_revenue: boolean,
): number {
  return commission_on_net_revenue ? net_amount_minor : amount_minor;
}

/**
 * The rate applied to a base, in minor units. "Percent = half away from zero, `(base × bps) / 10000`, in integers that cannot overflow."
 * Capped by max_commission_minor, which like the commission is in the sale's
 * currency. A fixed amount may be more than the sale. Only what is paid
 * must be a safe integer: what the cap cuts off may be of any size.
 *
 * @throws RangeError when an argument or the result is not a safe integer
 */
export function commissionAmount(
  { rate_type, rate_value, max_commission_minor }: CopiedRate,
  base_minor: number,
): number {
  const most = max_commission_minor ?? Number.POSITIVE_INFINITY;
  if (rate_type === 'fixed') return Math.min(safe(rate_value), most);
  return safe(Math.min(Number(scale(base_minor, rate_value, 10_000)), most));
}

/**
 * `value × numerator / denominator`, half away from zero, exactly: a BigInt, because the product may be beyond the safe integers.
 *
 * @throws RangeError when the value or the numerator is not a safe integer
 */
export function scale(value: number, numerator: number, denominator: number): bigint {
  const product = BigInt(safe(value)) * BigInt(safe(numerator));
  const divisor = BigInt(denominator);
  const size = product < 0n ? -product : product;
  const quotient = size / divisor + ((size % divisor) * 2n >= divisor ? 1n : 0n);
  return product < 0n ? -quotient : quotient;
}

/** @throws RangeError when the value is not a safe integer */
export function safe(value: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not an integer from -(2^53 - 1) to 2^53 - 1`);
  return value;
}
