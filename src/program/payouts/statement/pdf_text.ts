import { fractionDigits } from '../../../core/values/money.ts';
import { decimal } from '../bank/amount.ts';
import type { Statement } from './statement.ts';

/** Characters that neither font has: letters of other scripts (Chinese, Arabic …), symbols and emoji. `pdf_font.ts` names the fonts. */
const outside =
  /[^\x20-\x7e\xa0-\u0377\u037a-\u037f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u03e1\u03f0-\u052f\u0900-\u097f\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fc4\u1fc6-\u1fd3\u1fd6-\u1fdb\u1fdd-\u1fef\u2010-\u2027\u2030-\u205e\u20a0-\u20c0\u2100-\u215f\u2212\s\p{Cc}\p{Cf}]+/gu;
const invisible = /[\u00ad\u200c\u200d]/;

/**
 * The text in the characters that the fonts of the document have, in one line and cut to a number of characters with an ellipsis. Others are
 * `[…]`, and a note of the document says where they are.
 */
export function pdfText(text: string, most: number): string {
  const written = text.normalize('NFC').replace(outside, '[…]');
  const line = written
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replace(/\p{Cf}/gu, (one) => (invisible.test(one) ? one : ''))
    .trim();
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
}

/** Returns whether a text of the statement has characters that the document does not show. */
export function isCut({ program, partner, payout, lines }: Statement): boolean {
  const texts = [program.name, partner.name, partner.email, payout.external_id];
  const has = (text: string | null) => text !== null && text.normalize('NFC').search(outside) >= 0;
  return texts.some(has) || lines.some(({ description, sale_reference }) => has(description) || has(sale_reference));
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
