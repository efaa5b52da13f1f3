/** Amounts as decimals in files for banks, accountants and wallets, from integers and back, exactly. */
import { fractionDigits } from '../../../core/values/money.ts';

/** `-1234` in EUR is `-12.34`, in JPY `-1234`, in KWD `-1.234`. */
export const decimal = (amount_minor: bigint | number, currency: string): string =>
  withPoint(BigInt(amount_minor), fractionDigits(currency));

/** The decimal as a number for a CSV or JSON writer, exactly: a text such as `-12.34` would be taken for a formula. */
export const decimalCell = (amount_minor: number, currency: string): unknown =>
  (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(decimal(amount_minor, currency));

/** The integer with its last digits after the point. */
export function withPoint(value: bigint, digits: number): string {
  const size = String(value < 0n ? -value : value).padStart(digits + 1, '0');
  const whole = size.slice(0, size.length - digits);
  return `${value < 0n ? '-' : ''}${whole}${digits === 0 ? '' : `.${size.slice(-digits)}`}`;
}

/**
 * The minor units of a decimal as a bank writes it, such as `12.3`, `12.30` or `12.3000` in EUR. Null where it is no such amount: negative,
 * with an exponent, more digits than the currency has, or beyond the safe integers.
 */
export function minorUnits(text: string, currency: string): number | null {
  const [, whole, fraction = ''] = /^\+?(\d{1,18})(?:\.(\d{0,18}))?$/.exec(text) ?? [];
  const digits = fractionDigits(currency);
  if (whole === undefined || /[1-9]/.test(fraction.slice(digits))) return null;
  const value = Number(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  return Number.isSafeInteger(value) ? value : null;
}
