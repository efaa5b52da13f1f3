import { z } from 'zod';

/** Minor units of the currency beside it. Up to 2^53 - 1: every amount is exact in JSON and in JavaScript. */
export const minor = z.int();
export const minorNotNegative = z.int().min(0);
/** The most that a caller may allow to be spent: a thousand million of the major unit. */
export const most_ceiling_minor = 100_000_000_000;
export const ceiling = minorNotNegative.max(most_ceiling_minor);

const known = new Set(Intl.supportedValuesOf('currency'));

/** ISO 4217, 3 capital letters. */
export const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, 'must be 3 capital letters, such as EUR')
  .refine((code) => known.has(code), 'must be an ISO 4217 currency code')
  .meta({ description: 'ISO 4217.', examples: ['USD'] });

/** Currency of a stored record: checked when it was written. */
export const storedCurrency = z.string().length(3).describe('ISO 4217.');

/** The currencies whose minor unit is not a hundredth (ISO 4217), by their number of digits. */
const unusual_digits = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
const digits_by_currency = new Map(
  Object.entries(unusual_digits).flatMap(([digits, codes]) => codes.split(' ').map((code) => [code, Number(digits)])),
);

/**
 * Returns the number of digits after the point in amounts of the currency: 2 for EUR, 0 for JPY, 3 for KWD. Not those of `Intl`, whose CLDR data give
 * 0 for HUF, IDR, IQD and fourteen others: an amount written by them would be a hundred or a thousand times too high.
 */
export const fractionDigits = (currency: string): number => digits_by_currency.get(currency) ?? 2;
