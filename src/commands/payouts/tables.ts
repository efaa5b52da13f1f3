/** What `rail payouts` prints of sums and reasons. */
import { type NotEligibleReason, reason_texts } from '../../program/payouts/eligibility.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { table } from '../command.ts';

export interface Sums {
  amounts: { currency: string; payouts: number; amount_minor: number }[];
  not_eligible: { reason: NotEligibleReason; count: number }[];
}

/** Payouts by currency, then balances that are not paid by reason. */
export function sumsLines({ amounts, not_eligible }: Sums): string[] {
  const by_currency = amounts.map(({ currency, payouts, amount_minor }) => [
    ...[currency, grouped(payouts), formatMoney(amount_minor, currency)],
  ]);
  const by_reason = not_eligible.map(({ reason, count }) => [reason, grouped(count), reason_texts[reason]]);
  return [
    ...sheet(['CURRENCY', 'PAYOUTS', 'AMOUNT'], by_currency, [1, 2], 'Nobody is paid.'),
    '',
    ...sheet(['NOT ELIGIBLE', 'BALANCES', 'REASON'], by_reason, [1], 'Every balance is paid.'),
  ];
}

export const grouped = (count: number): string => count.toLocaleString('en');

/** A table with some columns aligned to the right, as numbers are. */
export function sheet(columns: string[], rows: string[][], right: number[], when_empty: string): string[] {
  const widths = columns.map((name, nth) => Math.max(name.length, ...rows.map((row) => (row[nth] as string).length)));
  const align = (row: string[]) =>
    row.map((cell, nth) => (right.includes(nth) ? cell.padStart(widths[nth] as number) : cell));
  return table(align(columns), rows.map(align), when_empty);
}
