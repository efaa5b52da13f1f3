/** Prints sums and reasons for `rail payouts`. */
import { type NotEligibleReason, reason_texts } from '../../program/payouts/eligibility.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { table } from '../output/table.ts';

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
    ...table(['CURRENCY', 'PAYOUTS', 'AMOUNT'], by_currency, 'Nobody is paid.'),
    '',
    ...table(['NOT ELIGIBLE', 'BALANCES', 'REASON'], by_reason, 'No balance is left out.'),
  ];
}

export const grouped = (count: number): string => count.toLocaleString('en');
