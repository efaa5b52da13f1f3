import { fractionDigits } from '../../../core/values/money.ts';

/** 1234 of USD is `12.34`, of JPY `1234`, of KWD `1.234`. No floating point is involved. */
export function decimalOf(amount_minor: number, currency: string): string {
  const digits = fractionDigits(currency);
  const text = String(amount_minor).padStart(digits + 1, '0');
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** The reverse of `decimalOf`; more digits are accepted if they are zeros. Null: not an amount of this currency. */
export function minorOf(decimal: string, currency: string): number | null {
  const [, whole, fraction = ''] = /^([0-9]{1,15})(?:\.([0-9]{1,15}))?$/.exec(decimal) ?? [];
  const digits = fractionDigits(currency);
  if (whole === undefined || /[1-9]/.test(fraction.slice(digits))) return null;
  const minor = Number(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  return Number.isSafeInteger(minor) ? minor : null;
}
