/**
 * Ids of Rail in the files of banks. A TypeID has a `_`, which neither SEPA nor SWIFT allows in an identifier, and for which a bank may refuse
 * the whole file: it is written as `-`, and read back whatever character the bank has put there.
 */

/** The longest MsgId, PmtInfId and EndToEndId of the schema. */
const most = 35;

/**
 * An id or an attempt's key as it stands in a file: `pyt_01…-2` is `pyt-01…-2`. A longer one is refused and never cut, because two payments
 * could then have one name: a key is too long from the 10,000th attempt of a payout on.
 *
 * @throws RangeError when it is longer than 35 characters or has others than letters, digits, `_` and `-`
 */
export function bankIdentifier(id: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(id)) throw new RangeError(`'${id}' has characters that no bank identifier has.`);
  if (id.length > most) throw new RangeError(`'${id}' is longer than ${most} characters, the most that a bank takes.`);
  return id.replaceAll('_', '-');
}

/** Returns whether the id of a payment is of the form of an attempt's key: an account has other payments too. */
export const isAttemptKey = (id: string): boolean => id.startsWith('pyt_');

/** The id or key of what a bank reports. Anything that is not of Rail's form is given as it is. */
export function railIdentifier(reported: string): string {
  const [, prefix, suffix, rest] = /^([a-z]+)[^a-z0-9]?([0-7][0-9a-hjkmnp-tv-z]{25})((?:-\d+)?)$/i.exec(reported) ?? [];
  return prefix === undefined ? reported : `${prefix}_${suffix}${rest}`.toLowerCase();
}
