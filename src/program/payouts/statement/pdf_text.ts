import { fractionDigits } from '../../../core/values/money.ts';
import { decimal } from '../bank/amount.ts';
import { latin } from '../bank/latin.ts';

/** Printable characters of WinAnsi, the encoding of the standard fonts of PDF: Latin letters of Western Europe. */
const outside_win_ansi = /[^\x20-\x7e\xa0-\xff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]+/g;

/**
 * The text in the characters that Helvetica has, in one line and cut to a number of characters with an ellipsis. Other Latin letters lose
 * their marks, Greek and Cyrillic are transliterated, and each Chinese, Japanese, Korean, Arabic … character and each emoji is a `?`: the JSON and
 * the CSV have them.
 */
export function pdfText(text: string, most: number): string {
  const written = text.normalize('NFC').replace(outside_win_ansi, (run) => latin(run, '?'));
  const line = written.replace(/\s+/g, ' ').trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** By digits after the point: each takes longer to make than to format a thousand amounts. */
const formats = new Map<number, Intl.NumberFormat>();

/** `1234567` in EUR is `12,345.67`: exact, because Intl gets a decimal and no float, and the digits of ISO 4217. */
export function pdfAmount(amount_minor: number, currency: string): string {
  const digits = fractionDigits(currency);
  const format =
    formats.get(digits) ??
    new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  formats.set(digits, format);
  return format.format(decimal(amount_minor, currency) as Intl.StringNumericLiteral);
}

/** The date in UTC, `2026-11-30`. */
export const pdfDate = (timestamp: string): string => timestamp.slice(0, 10);
