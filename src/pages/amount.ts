/** Amounts as people type them, `12.50`, from integers of a small unit and back, exactly. */

/** `12.50` of `1250` with two digits after the point. @param integer its decimal digits, with a sign where it is negative */
export function decimalText(integer: string, digits: number): string {
  const [, sign = '', size = ''] = /^(-?)([0-9]+)$/.exec(integer) ?? [];
  if (size === '' || digits === 0) return integer;
  const padded = size.padStart(digits + 1, '0');
  return `${sign}${padded.slice(0, -digits)}.${padded.slice(-digits)}`;
}

/**
 * The reverse. White space around it does not count, and digits may be left out at the end: `12.5` is `12.50`.
 * @returns undefined where it is no such number, has more digits after the point than there are, or is beyond the safe integers
 */
export function integerOf(typed: string, digits: number): number | undefined {
  const [, sign, whole = '', fraction = ''] = /^([-−]?)([0-9]{1,16})(?:\.([0-9]{0,16}))?$/.exec(typed.trim()) ?? [];
  if (whole === '' || /[1-9]/.test(fraction.slice(digits))) return undefined;
  const value = Number(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  if (!Number.isSafeInteger(value)) return undefined;
  return sign === '' || value === 0 ? value : -value;
}
