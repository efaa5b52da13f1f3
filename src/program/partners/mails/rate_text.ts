import { decimal } from '../../payouts/bank/amount.ts';

/** A rate: basis points, or minor units of the program's currency. Null: no rule pays. */
export type ToldRate = { rate_type: 'percent' | 'fixed'; rate_value: number } | null;

/** A rate for people to read, exact: `12.5%`, `12,5 %`, `€5.00`. */
export function rateIn(language: string, { rate_type, rate_value }: NonNullable<ToldRate>, currency: string): string {
  if (rate_type === 'percent')
    return new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 2 }).format(rate_value / 10_000);
  const amount = decimal(rate_value, currency);
  const fractionDigits = amount.split('.')[1]?.length ?? 0;
  return new Intl.NumberFormat(language, {
    style: 'currency',
    currency,
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  }).format(amount as Intl.StringNumericLiteral);
}
